// If a peer is late, gone or in another call, a rank gets an error and never a result. On virtual GPUs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <span>

#include "tests/base/error_of.hpp"
#include "tests/collective/failing_array.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"

namespace waywiser {
namespace {

// Faults: gpus T
TEST(GpuFailure, ARankThatIsLateIsAnErrorForWhoWaitsForTheStreamAlone) {
  Story story(2, 1);
  const std::string why = "rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 5000 float32, sum";
  story.run([&](Group& group) {
    FailingArray array(group, 5000, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    expect_no_result(group, array, why);
  });
  EXPECT_EQ(story.problems[0], "");
  EXPECT_TRUE(has(story.problems[1], why)) << story.problems[1];
  EXPECT_EQ(story.printed(0), "waywiser: " + why + "\n");
}

// Faults: gpus L
TEST(GpuFailure, ARankThatIsLateWithinTheTimeoutIsNoError) {
  Story story(2, much_patience);
  story.run([](Group& group) {
    FailingArray array(group, 5000, static_cast<float>(group.rank() + 1));
    group.barrier(Mode::on(array.stream()));
    // Rank 1 comes when rank 0 is known to wait on its GPU.
    if (group.rank() == 0) {
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
      for (int turn = 0; turn < 100 && !array.stream().done(); ++turn) ::usleep(1000);
      group.send(std::span<int>(), 1);
    } else {
      group.recv(std::span<int>(), 0);
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    }
    array.enqueue_consumer();
    array.stream().synchronize(Deadline::in(much_patience));
    require_that(array.values_are(3), "the sum");
  });
  EXPECT_EQ(story.problems, std::vector<std::string>(2));
  EXPECT_EQ(story.printed(0) + story.printed(1), "");
}

// Also in a part of a group, whose ranks are told as ranks of the job.
// Faults: gpus D
TEST(GpuFailure, ADeadRankIsKnownAtOnceToWhoWaitsForTheStreamAlone) {
  Story story(3, 600);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    std::optional<Group> part = group.split(group.rank() == 0 ? 0 : 1);
    if (group.rank() == 0) return stay_away(group);
    part->barrier(Mode::on(array.stream()));
    part->synchronize(array.stream());
    part->barrier();
    if (group.rank() == 2) {  // ends when rank 1 is known to wait on its GPU
      group.recv(std::span<int>(), 1);
      ::kill(::getpid(), SIGKILL);
    }
    part->all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    static_cast<void>(error_of([&] { group.send(std::span<int>(), 2); }));  // rank 2 may end before this returns
    expect_no_result(*part, array, "rank 2 (process");
  });
  EXPECT_EQ(story.problems[1], "");
  const std::string line = story.printed(1);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  EXPECT_EQ(line.find("waywiser: rank 1 has given up all_reduce #2 of 5000 float32, sum while it waited for rank 2: "
                      "rank 2 (process"),
            0u)
      << line;
  EXPECT_TRUE(has(line, " is gone")) << line;
}

// Faults: gpus E
TEST(GpuFailure, TheLastOperationOfAProgram) {
  const auto last = [](const std::function<void(Group&)>& end) {
    Story story(2, 20);
    story.run([&](Group& group) {
      FailingArray array(group, 100, 1);
      group.barrier(Mode::on(array.stream()));
      group.synchronize(array.stream());
      if (group.rank() == 1) return stay_away(group);
      group.set_timeout(1);  // not earlier: a GPU takes its time to be opened
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
      end(group);
    });
    EXPECT_EQ(story.printed(0),
              "waywiser: rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 100 float32, sum\n");
    return story.problems[0];
  };
  EXPECT_EQ(last([](Group& group) { group.close(); }),
            "rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 100 float32, sum");
  EXPECT_EQ(last([](Group&) {}), "");  // a destructor cannot throw
}

// Faults: gpus T
TEST(GpuFailure, TheProcessEndsWhereThatIsWanted) {
  const WithVariable abort("WAYWISER_ON_FAILURE", "abort");
  Story story(2, 1);
  story.run([](Group& group) {
    FailingArray array(group, 100, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    ::sleep(static_cast<unsigned>(much_patience));
  });
  EXPECT_EQ(story.problems[0], "exit 1");
  EXPECT_TRUE(has(story.printed(0), "rank 1 did not send within")) << story.printed(0);
}

TEST(GpuFailure, WhatIsToBeDoneThenIsOneOfThreeThings) {
  const WithVariable wrong("WAYWISER_ON_FAILURE", "explode");
  EXPECT_TRUE(has(error_of([] { Group::join({}); }), "on_failure is 'trap', 'raise' or 'abort', not 'explode'"));
}

// Both ranks call something on their streams; the host waits for the stream alone.
void expect_unlike(const std::function<void(Group&, FailingArray&)>& first,
                   const std::function<void(Group&, FailingArray&)>& second, const std::string& mine,
                   const std::string& theirs) {
  Story story(2, 600);
  story.run([&](Group& group) {
    FailingArray array(group, 3000000, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    // The kernel may trap while more of the operation is enqueued, which raises then.
    static_cast<void>(error_of([&] { (group.rank() == 0 ? first : second)(group, array); }));
    expect_no_result(group, array, "");
  });
  // If two processes on one CUDA GPU trap at the same time, the driver can leave one of them waiting, which then ends.
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string said = story.printed(static_cast<int>(rank));
    const bool has_ended = has(said, "the GPU has not ended the operation that has failed");
    EXPECT_EQ(story.problems[rank], tests_use_cuda() && has_ended ? "exit 1" : "") << said;
  }
  const std::string all = story.printed(0) + story.printed(1);
  EXPECT_TRUE(has(all, "rank 0 is in " + mine + ", but rank 1 is in " + theirs) ||
              has(all, "rank 1 is in " + theirs + ", but rank 0 is in " + mine))
      << all;
}

// Faults: gpus W
TEST(GpuFailure, RanksThatCallDifferentThingsAreToldSo) {
  const auto sum_of = [](std::size_t count, DataType type = DataType::float32) {
    return [=](Group& group, FailingArray& array) {
      const Elements part = array.elements(type).slice(0, count);
      group.all_reduce(part, part, ReduceOp::sum, Mode::on(array.stream()));
    };
  };
  const std::string hundred = "all_reduce #2 of 100 float32, sum";
  expect_unlike(sum_of(100), sum_of(2000000), hundred, "all_reduce #2 of 2000000 float32, sum");
  expect_unlike(sum_of(100), sum_of(100, DataType::int32), hundred, "all_reduce #2 of 100 int32, sum");
  expect_unlike(
      sum_of(100),
      [](Group& group, FailingArray& array) { group.broadcast(array.part(100), 1, Mode::on(array.stream())); }, hundred,
      "broadcast #2 of 100 float32, root 1");
}

// Faults: gpus P
TEST(GpuFailure, MessagesOfTwoSizesAreToldSo) {
  for (const auto& [sent, received] : {std::pair<std::size_t, std::size_t>{80, 100}, {3000000, 5001}}) {
    Story story(2, 600);
    story.run([&](Group& group) {
      FailingArray array(group, 3000000, 1);
      group.barrier(Mode::on(array.stream()));
      group.synchronize(array.stream());
      if (group.rank() == 0) {
        // The kernel may trap before the call is over, which raises then.
        static_cast<void>(error_of([&] { group.recv(array.part(received), 1, 0, Mode::on(array.stream())); }));
        return expect_no_result(group, array, "");
      }
      group.send(array.part(sent), 0, 0, Mode::on(array.stream()));
      stay_away(group);
    });
    EXPECT_EQ(story.problems[0], "");
    const std::string why = "rank 0 receives " + std::to_string(received) + " float32 from rank 1, which sends " +
                            std::to_string(sent) + " float32";
    EXPECT_EQ(story.printed(0), "waywiser: " + why + "\n");
    EXPECT_TRUE(has(story.problems[1], why)) << story.problems[1];
  }
}

}  // namespace
}  // namespace waywiser
