#include "waywiser/group/local_ranks.hpp"

#include <gtest/gtest.h>

#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

TEST(LocalRanks, OfOneMachineAreAll) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    require_that(local_rank(group) == group.rank() && local_size(group) == 3, "one machine");
    const Group here = split_by_machine(group, -group.rank());
    require_that(here.size() == 3 && here.rank() == 2 - group.rank(), "ordered by key");
  }),
            no_problems);
}

TEST(LocalRanks, AreCountedOnEachMachineAndInEachPart) {
  TestRanks ranks(5);
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int rank = group.rank();
    require_that(local_rank(group) == rank % 2 && local_size(group) == (rank == 4 ? 1 : 2), "three machines");
    Group here = split_by_machine(group);
    require_that(here.rank() == rank % 2 && here.size() == local_size(group), "a part for each machine");
    const std::vector<int> mine{rank};
    std::vector<int> sum(1);
    here.all_reduce(std::span(mine), std::span(sum));
    require_that(sum[0] == (rank == 4 ? 4 : 4 * (rank / 2) + 1), "it carries messages");
    const auto odd = group.split(rank % 2, -rank);
    require_that(local_rank(*odd) == 0 && local_size(*odd) == 1, "no two of a part are on one machine");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
