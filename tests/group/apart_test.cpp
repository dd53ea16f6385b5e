// Groups that are made apart, each with a unique id or by split_apart: a failure ends one of them and not the other.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"
#include "waywiser/group/split_apart.hpp"

namespace waywiser {
namespace {

using Divide = Group(const TestRanks& ranks, Group& all);

// The ranks of a part as a job of their own.
Group by_id(const TestRanks& ranks, Group& all) {
  Group part = std::move(*all.split(all.rank() / 2));
  UniqueId id = part.rank() == 0 ? make_unique_id() : UniqueId{};
  part.broadcast(std::span(id), 0);
  JoinOptions options = ranks.options(part.rank());
  options.launch = launch_by(id, part.rank(), part.size());
  return Group::join(options);
}

Group by_split(const TestRanks&, Group& all) { return std::move(*split_apart(all, all.rank() / 2)); }

void require_sums(Group& group, int times) {
  for (int time = 0; time < times; ++time) {
    std::vector<int> sum(70000, time + group.rank());
    group.all_reduce(std::span(sum), std::span(sum));
    require_that(sum.front() == 2 * time + 1 && sum.back() == 2 * time + 1, "sum " + std::to_string(time));
  }
}

void outlive(const TestRanks& ranks, int rank, Divide divide) {
  Group all = Group::join(ranks.options(rank));
  std::optional<Group> part = all.split(rank / 2);
  Group apart = divide(ranks, all);
  require_sums(apart, 3);
  // It ends once the others wait for nothing of it: they could hear of the death in place of a barrier's end.
  if (rank == 1) {
    for (const int other : {0, 2, 3}) all.recv(std::span<int>(), other);
    std::raise(SIGKILL);
  }
  static_cast<void>(error_of([&] { all.send(std::span<int>(), 1); }));  // rank 1 may end before this returns
  require_that(error_of([&] { all.barrier(); }).find("rank 1 (process") != std::string::npos, "of the whole job");
  require_that(error_of([&] { part->barrier(); }).find("rank 1 (process") != std::string::npos, "of each part");
  if (rank == 0) {
    require_that(error_of([&] { apart.barrier(); }).find("rank 1 (process") != std::string::npos, "of its own group");
    return;
  }
  require_that(apart.failure().empty(), "a group apart has failed: " + apart.failure());
  require_sums(apart, 20);
  apart.close();
}

void expect_survivors(Divide divide) {
  const TestRanks ranks(4);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 4; ++rank)
    processes.push_back(ranks.start(rank, [&](int self) { outlive(ranks, self, divide); }));
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    EXPECT_EQ(TestRanks::wait(processes[rank]), rank == 1 ? "signal 9" : "") << rank;
}

TEST(Apart, AFailureOfAnotherGroupEndsNothing) { expect_survivors(by_id); }

TEST(Apart, AFailureOfAPartMadeApartEndsNoOther) { expect_survivors(by_split); }

// The parts are numbered from 0 by the key, and have the options of the whole.
TEST(Apart, AFailureOfAPartDoesNotEndTheWhole) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& all) {
    all.set_timeout(10);
    std::optional<Group> part = split_apart(all, all.rank() == 0 ? -1 : 5, -all.rank());
    require_that(part.has_value() == (all.rank() != 0), "a color below 0 gives no group");
    if (part) {
      require_that(part->timeout() == 10 && part->size() == 2 && part->rank() == 2 - all.rank(), "rank of the part");
      require_sums(*part, 2);
      if (part->rank() == 0) part->abort("out of fuel");
      const std::string why = error_of([&] { part->recv(std::span<int>(), 1 - part->rank()); });
      require_that(why.starts_with("rank 0: out of fuel"), why);
    }
    require_that(all.failure().empty(), "the whole has failed: " + all.failure());
    std::vector<int> sum{all.rank()};
    all.all_reduce(std::span(sum), std::span(sum));
    require_that(sum.front() == 3, "sum of the whole");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
