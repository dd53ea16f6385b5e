// Ranks that make unlike calls.
#include <gtest/gtest.h>

#include "tests/comm/faults.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/message/call.hpp"

namespace waywiser {
namespace {

// Faults: host W
TEST(Fault, UnlikeMessagesAreNamed) {
  struct Case {
    std::size_t sent, expected;
    bool integers;
    std::string words;
  };
  const Case cases[] = {
      {10, 12, false, "recv #1 of 12 float32 from rank 0: rank 0 sent 40 bytes where 48 were expected"},
      {12, 10, false, "recv #1 of 10 float32 from rank 0: rank 0 sent 48 bytes where 40 were expected"},
      {300000, 10, false, "rank 0 sent 1200000 bytes where 40 were expected"},
      {10, 300000, false, "rank 0 sent 40 bytes where 1200000 were expected"},
      {300000, 310000, false, "rank 0 sent 1200000 bytes where 1240000 were expected"},
      {5000, 10000, false, "rank 0 sent 20000 bytes where 40000 were expected"},
      {10000, 5000, false, "rank 0 sent 40000 bytes where 20000 were expected"},
      {10, 10, true, "recv #1 of 10 int32 from rank 0: rank 0 is in send of float32"},
  };
  for (const Case& each : cases) {
    const auto problems = TestRanks(2).in_processes([&](Group& group) {
      std::vector<float> data(group.rank() == 0 ? each.sent : each.expected);
      std::vector<std::int32_t> integers(each.expected);
      if (group.rank() == 0) group.send(std::span(data), 1);
      if (group.rank() == 1 && each.integers) group.recv(std::span(integers), 0);
      if (group.rank() == 1) group.recv(std::span(data), 0);
      group.recv(std::span(data), 1 - group.rank());
    });
    expect_each(problems, 2, each.words);
  }
}

// Faults: host W
TEST(Fault, UnlikeCallsOfACollectiveAreNamed) {
  const Call call{CallKind::all_reduce, DataType::float32, ReduceOp::sum, 0, -1, -1, 12, 100};
  EXPECT_EQ(difference(0, call, 1, call), "");
  Call other = call;
  other.count = 80;
  EXPECT_EQ(difference(0, call, 1, other),
            "rank 0 is in all_reduce #12 of 100 float32, sum, but rank 1 is in all_reduce #12 of 80 float32, sum");
  other = call;
  other.op = ReduceOp::max;
  EXPECT_NE(difference(0, call, 1, other), "");
  other = {CallKind::broadcast, DataType::float32, ReduceOp::sum, 0, 2, -1, 12, 100};
  EXPECT_TRUE(holds(difference(0, call, 1, other), "but rank 1 is in broadcast #12 of 100 float32, root 2"));
  other.sequence = 13;  // a later one is no contradiction: this rank has not come to it yet
  EXPECT_EQ(difference(0, call, 1, other), "");
  other = call;
  other.group = 1 << 16;
  EXPECT_EQ(difference(0, call, 1, other), "");
}

}  // namespace
}  // namespace waywiser
