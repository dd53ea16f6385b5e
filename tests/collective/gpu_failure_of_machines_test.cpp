// The same where the peer is on another machine.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "tests/base/error_of.hpp"
#include "tests/collective/failing_array.hpp"
#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

// Between machines the host carries it out, while the stream waits: a rank that is late, has died or is in another call
// never gives a result there either.
// Faults: gpus O
TEST(GpuFailure, ARankOfAnotherMachineThatIsLateIsAnErrorForWhoWaitsForTheStreamAlone) {
  using Operation = std::function<void(Group&, FailingArray&)>;
  const Operation all_reduce = [](Group& group, FailingArray& array) {
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
  };
  const Operation recv = [](Group& group, FailingArray& array) {
    group.recv(array.elements(), 1, 0, Mode::on(array.stream()));
  };
  const Operation send = [](Group& group, FailingArray& array) {
    group.send(array.elements(), 1, 0, Mode::on(array.stream()));
  };
  for (const auto& [operation, call, waits] :
       {std::tuple{all_reduce, "all_reduce #", "waiting for rank 1"}, std::tuple{recv, "recv #", "waiting for rank 1"},
        std::tuple{send, "send #", "bytes have not been taken"}}) {
    Story story(2, 1, true);
    story.run([&](Group& group) {
      FailingArray array(group, 500000, 1);  // no network keeps so much of a message on its way
      set_up(group, array);
      if (group.rank() == 1) return stay_away(group);
      operation(group, array);
      expect_no_result(group, array, "waited 1.00 s");
    });
    EXPECT_EQ(story.problems[0], "");
    EXPECT_TRUE(has(story.problems[1], "rank 0: waited 1.00 s in " + std::string(call))) << story.problems[1];
    const std::string line = story.printed(0);
    EXPECT_EQ(line.find("waywiser: rank 0 has given up " + std::string(call)), 0u) << line;
    EXPECT_TRUE(has(line, " on a stream: ")) << line;
    EXPECT_TRUE(has(line, waits)) << line;
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  }
}

// Faults: gpus O
TEST(GpuFailure, ADeadRankOfAnotherMachineIsKnownAtOnceToWhoWaitsForTheStreamAlone) {
  Story story(2, 600, true);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    set_up(group, array);
    if (group.rank() == 1) {  // ends once rank 0 has begun: before, the call itself would hear of the death
      group.recv(std::span<int>(), 0);
      ::kill(::getpid(), SIGKILL);
    }
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    static_cast<void>(error_of([&] { group.send(std::span<int>(), 1); }));  // rank 1 may end before this returns
    expect_no_result(group, array, "rank 1 (process");
  });
  EXPECT_EQ(story.problems[0], "");
  const std::string line = story.printed(0);
  EXPECT_EQ(line.find("waywiser: rank 0 has given up all_reduce #"), 0u) << line;
  EXPECT_TRUE(has(line, "rank 1 (process") && has(line, " is gone")) << line;
}

// Faults: gpus O
TEST(GpuFailure, RanksOfTwoMachinesThatCallDifferentThingsAreToldSo) {
  Story story(2, 600, true);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    set_up(group, array);
    const Elements part = array.part(group.rank() == 0 ? 100 : 200);
    static_cast<void>(error_of([&] { group.all_reduce(part, part, ReduceOp::sum, Mode::on(array.stream())); }));
    expect_no_result(group, array, "");
  });
  EXPECT_EQ(story.problems, std::vector<std::string>(2));
  const std::string all = story.printed(0) + story.printed(1);
  EXPECT_TRUE(has(all, "bytes where") && has(all, "were expected")) << all;
}

// Faults: gpus O
TEST(GpuFailure, TheLastOperationOfAProgramWithRanksOnTwoMachines) {
  Story story(2, 1, true);
  story.run([](Group& group) {
    FailingArray array(group, 100, 1);
    set_up(group, array);
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    group.close();
  });
  EXPECT_TRUE(has(story.problems[0], "waited 1.00 s in all_reduce #")) << story.problems[0];
  EXPECT_TRUE(has(story.printed(0), "waywiser: rank 0 has given up all_reduce #")) << story.printed(0);
}

}  // namespace
}  // namespace waywiser
