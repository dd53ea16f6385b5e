// Groups that are made apart, each with a unique id: a failure ends one of them and not the other.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"

namespace waywiser {
namespace {

// The ranks of `part` again, as a job of their own.
Group made_apart(const TestRanks& ranks, Group& part) {
  UniqueId id = part.rank() == 0 ? make_unique_id() : UniqueId{};
  part.broadcast(std::span(id), 0);
  JoinOptions options = ranks.options(part.rank());
  options.launch = launch_by(id, part.rank(), part.size());
  return Group::join(options);
}

void require_sums(Group& group, int times) {
  for (int time = 0; time < times; ++time) {
    std::vector<int> sum(70000, time + group.rank());
    group.all_reduce(std::span(sum), std::span(sum));
    require_that(sum.front() == 2 * time + 1 && sum.back() == 2 * time + 1, "sum " + std::to_string(time));
  }
}

void outlive(const TestRanks& ranks, int rank) {
  Group all = Group::join(ranks.options(rank));
  std::optional<Group> part = all.split(rank / 2);
  Group apart = made_apart(ranks, *part);
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

TEST(Apart, AFailureOfAnotherGroupEndsNothing) {
  const TestRanks ranks(4);
  std::vector<TestRanks::Process> processes;
  for (int rank = 0; rank < 4; ++rank) processes.push_back(ranks.start(rank, [&](int self) { outlive(ranks, self); }));
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    EXPECT_EQ(TestRanks::wait(processes[rank]), rank == 1 ? "signal 9" : "") << rank;
}

}  // namespace
}  // namespace waywiser
