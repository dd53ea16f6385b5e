#include <gtest/gtest.h>

#include <array>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/halo/grid.hpp"
#include "waywiser/halo/halo_exchange.hpp"

namespace waywiser {
namespace {

constexpr std::array two_parts{2, 1}, other_parts{1, 2};

std::string said_of(Group& group, const HaloGrid& grid) {
  std::vector<double> values(100);
  const HaloPartition partition = grid_partition(grid, group.rank());
  const HaloArray fields[] = {{std::span(values).first(partition.cells)}};
  return error_of([&] { HaloExchange(group, partition, fields); });
}

void require_said(const std::string& said, const std::string& wanted) { require_that(said == wanted, said); }

TEST(HaloAgreement, UnlikeGridsAreRefusedAtAllRanks) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const int odd = group.rank();
    require_said(said_of(group, even_grid({4 + odd, 4}, {1, 1}, {false, false}, two_parts)),
                 "rank 1 has another shape of the whole grid than rank 0");
    require_said(said_of(group, even_grid({4, 4}, {1, 1 + odd}, {false, false}, two_parts)),
                 "rank 1 has another width of ghosts than rank 0");
    require_said(said_of(group, even_grid({4, 4}, {1, 1}, {false, odd == 1}, two_parts)),
                 "rank 1 has another choice of periodic dimensions than rank 0");
    require_said(said_of(group, even_grid({4, 4}, {1, 1}, {false, false}, odd == 1 ? other_parts : two_parts)),
                 "rank 1 has another list of all ranks' boxes than rank 0");
    require_said(said_of(group, even_grid({4, 4}, {1, 1}, {false, false}, two_parts)), "no error");
    group.barrier();
  }),
            no_problems);
}

TEST(HaloAgreement, UnlikeVariantsAreRefusedAtAllRanks) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<double> values(100);
    const HaloPartition partition = grid_partition(even_grid({4, 4}, {1, 1}, {false, false}, two_parts), group.rank());
    const HaloArray fields[] = {{std::span(values).first(partition.cells)}};
    HaloExchange exchange(group, partition, fields);
    const bool odd = group.rank() == 1;
    const auto used = [&](HaloVariant mine) { return error_of([&] { exchange.use(mine); }); };
    const std::string gives = "use() of a halo exchange: rank 1 gives ";
    require_said(used(odd ? HaloVariant::packed : HaloVariant::whole_field), gives + "packed, rank 0 whole_field");
    require_said(used(odd ? HaloVariant::mixed : HaloVariant::packed),
                 gives + "no variant that there is, rank 0 packed");
    require_said(used(HaloVariant::mixed), "use() of a halo exchange: rank 0 gives no variant that there is");
    const std::vector<HaloVariant> sides(exchange.sides().size(), HaloVariant::packed);
    require_said(odd ? error_of([&] { exchange.use(sides); }) : used(HaloVariant::packed),
                 gives + "a list, rank 0 packed");
    require_that(exchange.variant() == HaloVariant::packed, "the variant has changed");
    exchange.exchange();
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
