#include "waywiser/comm/bootstrap/unique_id.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

void join_and_sum(const TestRanks& ranks, const UniqueId& id, int rank, int size) {
  JoinOptions options = ranks.options(rank);
  options.launch = launch_by(id, rank, size);
  Group group = Group::join(options);
  std::vector<int> sum{rank};
  group.all_reduce(std::span(sum), std::span(sum));
  require_that(group.rank() == rank && group.size() == size && sum[0] == size * (size - 1) / 2, "a group");
  group.close();
}

// Without an address in the runtime folder, else at the port on which this process listens since it made the id.
TEST(UniqueId, LetsRanksMeetWithoutALauncher) {
  for (const std::string towards : {"", "127.0.0.1", "localhost"}) {
    const int size = 3;
    const TestRanks ranks(size);
    const UniqueId id = make_unique_id(towards);
    std::vector<TestRanks::Process> processes;
    for (const int rank : {2, 1, 0})
      processes.push_back(ranks.start(rank, [&](int self) { join_and_sum(ranks, id, self, size); }));
    for (const TestRanks::Process& process : processes) EXPECT_EQ(TestRanks::wait(process), "") << towards;
  }
}

TEST(UniqueId, IsAnotherEachTimeAndKeepsItsSecret) {
  const UniqueId id = make_unique_id(), other = make_unique_id();
  EXPECT_NE(id, other);
  const Launch launch = launch_by(id, 1, 2), same = launch_by(id, 0, 2);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.job, same.job);
  EXPECT_NE(launch.job, launch_by(other, 1, 2).job);
  EXPECT_GE(launch.secret.size(), 2 * shortest_secret);
  EXPECT_FALSE(launch.root.has_value());
  EXPECT_NE(launch_by(make_unique_id("127.0.0.1"), 0, 2).root->port, 0);
}

TEST(UniqueId, OtherBytesAndRanksAreRefused) {
  UniqueId id = make_unique_id();
  EXPECT_EQ(error_of([&] { launch_by(id, 2, 2); }), "rank 2 of 2: ranks are 0 to size - 1");
  EXPECT_EQ(error_of([&] { launch_by(id, -1, 2); }), "rank -1 of 2: ranks are 0 to size - 1");
  EXPECT_EQ(error_of([&] { launch_by(id, 0, 0); }), "rank 0 of 0: ranks are 0 to size - 1");
  id[0] ^= std::byte{1};
  EXPECT_EQ(error_of([&] { launch_by(id, 0, 2); }),
            "these bytes are no unique id: it has not been made, or by another version");
  EXPECT_EQ(error_of([&] { launch_by(UniqueId{}, 0, 2); }),
            "these bytes are no unique id: it has not been made, or by another version");
  EXPECT_THROW(make_unique_id("no host of this name.invalid"), Error);
}

}  // namespace
}  // namespace waywiser
