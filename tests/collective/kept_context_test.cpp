// With on_failure "raise" a failed operation spoils its output and leaves the GPU's context as it is. On virtual GPUs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <span>

#include "tests/base/error_of.hpp"
#include "tests/collective/failing_array.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"

namespace waywiser {
namespace {

using InCall = std::function<void(Group&, FailingArray&)>;

void sum(Group& group, FailingArray& array) {
  group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
}

// As expect_no_result(): the host waits for the stream and knows nothing of the group.
void expect_spoilt(Group& group, FailingArray& array, const std::string& why) {
  array.enqueue_consumer();
  array.stream().synchronize(Deadline::in(much_patience));
  require_that(array.is_spoilt(), "not a number for the consumer");
  FailingArray other(group, 1000, 5);
  other.enqueue_consumer();
  other.stream().synchronize(Deadline::in(much_patience));
  require_that(other.values_are(5), "the GPU goes on");
  for (const auto& next : {error_of([&] { sum(group, array); }), error_of([&] { group.synchronize(array.stream()); }),
                           error_of([&] { group.barrier(); })})
    require_that(has(next, why), "the group knows why, not: " + next);
}

// The last rank stays away, all others call and find their arrays spoilt.
void expect_all_spoilt(int ranks, std::size_t count, bool apart, const InCall& call) {
  const WithVariable raise("WAYWISER_ON_FAILURE", "raise");
  Story story(ranks, 2, apart);
  story.run([&](Group& group) {
    FailingArray array(group, count, 1);
    set_up(group, array, [&] {  // what is set aside for this size is there before anybody stays away
      if (!apart) sum(group, array);
    });
    if (group.rank() == ranks - 1) return stay_away(group);
    call(group, array);
    expect_spoilt(group, array, "rank ");
  });
  for (int rank = 0; rank < ranks - 1; ++rank) {
    EXPECT_EQ(story.problems[static_cast<std::size_t>(rank)], "") << story.printed(rank);
    EXPECT_TRUE(has(story.printed(rank), "waywiser: rank ")) << story.printed(rank);
  }
}

// Faults: gpus V
TEST(KeptContext, WhoMissesARankInAnyMethodHasNoNumberAndAGpuThatGoesOn) {
  for (const std::size_t count : {std::size_t{100}, std::size_t{5000}, std::size_t{100000}, std::size_t{3000000}})
    expect_all_spoilt(2, count, false, sum);
}

// The two others do not pass on what they have not got.
// Faults: gpus V
TEST(KeptContext, RanksThatMissTheSameOneSendNothingOn) {
  expect_all_spoilt(3, 3000000, false, sum);
  expect_all_spoilt(3, 3000000, false, [](Group& group, FailingArray& array) {
    group.broadcast(array.elements(), 2, Mode::on(array.stream()));
  });
}

// Faults: gpus V
TEST(KeptContext, WhatIsEnqueuedAfterwardsIsSpoiltToo) {
  const WithVariable raise("WAYWISER_ON_FAILURE", "raise");
  Story story(2, 2);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1), next(group, 5000, 1);
    set_up(group, array);
    if (group.rank() == 1) {
      // What rank 0 has called later meets this call, and would be its result.
      group.set_timeout(much_patience);
      static_cast<void>(error_of([&] { group.recv(std::span<int>(), 0); }));
      return;
    }
    sum(group, array);
    group.all_reduce(next.elements(), next.elements(), ReduceOp::sum, Mode::on(next.stream()));
    next.enqueue_consumer();
    next.stream().synchronize(Deadline::in(much_patience));
    require_that(next.is_spoilt(), "not a number in what came later");
    expect_spoilt(group, array, "rank 1 did not send within 2.00 s in all_reduce #3");
  });
  EXPECT_EQ(story.problems[0], "") << story.printed(0);
}

// Faults: gpus V
TEST(KeptContext, ADeadRankIsKnownAtOnce) {
  const WithVariable raise("WAYWISER_ON_FAILURE", "raise");
  Story story(2, 600);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    set_up(group, array);
    if (group.rank() == 1) {  // ends when rank 0 is known to wait on its GPU
      group.recv(std::span<int>(), 0);
      ::kill(::getpid(), SIGKILL);
    }
    sum(group, array);
    static_cast<void>(error_of([&] { group.send(std::span<int>(), 1); }));  // rank 1 may end before this returns
    expect_spoilt(group, array, "rank 1 (process");
  });
  EXPECT_EQ(story.problems[0], "") << story.printed(0);
  EXPECT_TRUE(has(story.printed(0), "while it waited for rank 1: rank 1 (process")) << story.printed(0);
}

// Faults: gpus V
TEST(KeptContext, RanksThatCallDifferentThings) {
  const WithVariable raise("WAYWISER_ON_FAILURE", "raise");
  Story story(2, 600);
  story.run([](Group& group) {
    FailingArray array(group, 100, 1);
    set_up(group, array);
    if (group.rank() == 0)
      sum(group, array);
    else
      group.broadcast(array.elements(), 0, Mode::on(array.stream()));
    expect_spoilt(group, array, "rank ");
  });
  EXPECT_EQ(story.problems, std::vector<std::string>(2)) << story.printed(0) << story.printed(1);
}

// Faults: gpus V
TEST(KeptContext, AMessageThatNobodySends) {
  for (const std::size_t count : {std::size_t{80}, std::size_t{30000}, std::size_t{3000000}})
    expect_all_spoilt(2, count, false, [](Group& group, FailingArray& array) {
      group.recv(array.elements(), 1, 0, Mode::on(array.stream()));
    });
}

// Faults: gpus V
TEST(KeptContext, AStreamThatWaitsForTheHosts) {
  expect_all_spoilt(2, 5000, true, sum);
  expect_all_spoilt(2, 5000, true, [](Group& group, FailingArray& array) {
    group.recv(array.elements(), 1, 0, Mode::on(array.stream()));
  });
}

}  // namespace
}  // namespace waywiser
