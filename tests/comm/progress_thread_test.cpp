// With a progress thread, operations progress while the program computes.
#include "waywiser/comm/session/progress_thread.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <future>
#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Found = ProgressThread::Found;

// Rank 0 begins something, and calls nothing of the group until rank 1 has got all of its part.
void begin_and_compute(Group& group, std::promise<void>& done) {
  std::vector<double> mine(1 << 20, group.rank() + 1.0), sum(mine.size()), copy(mine.size());
  if (group.rank() == 1) {
    group.all_reduce(std::span<const double>(mine), std::span(sum));
    group.recv(std::span(copy), 0);
    done.set_value();
  } else {
    Future sums = group.all_reduce(std::span<const double>(mine), std::span(sum), ReduceOp::sum, Mode::begin);
    Future sending = group.send(std::span<const double>(mine), 1, 0, Mode::begin);
    if (done.get_future().wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      throw Error(ErrorKind::timeout, "rank 1 has not got what rank 0 has begun");
    sums.wait();
    sending.wait();
  }
  require_that(sum == std::vector<double>(mine.size(), 3), "the sum");
  require_that(group.rank() == 0 || copy == std::vector<double>(mine.size(), 1), "the message");
}

TEST(ProgressThread, WhatHasBegunGoesOnWhileTheProgramComputes) {
  for (const bool apart : {false, true}) {
    TestRanks ranks(2);
    ranks.progress_thread = true;
    ranks.machines_apart = apart;
    std::promise<void> done;
    EXPECT_EQ(ranks.in_threads([&](Group& group) { begin_and_compute(group, done); }), no_problems);
  }
}

TEST(ProgressThread, CallsOfTheProgramAndTurnsOfTheThreadDoNotMix) {
  TestRanks ranks(3);
  ranks.progress_thread = true;
  EXPECT_EQ(ranks.in_threads([](Group& group) {
    std::vector<Future> sums;
    std::vector<std::vector<int>> in, out;
    constexpr int operations = 200;
    for (int i = 0; i < operations; ++i) {
      in.emplace_back(1 + i * 7 % 3000, group.rank() + i);
      out.emplace_back(in.back().size());
    }
    for (int i = 0; i < operations; ++i) {
      const auto at = static_cast<std::size_t>(i);
      sums.push_back(group.all_reduce(std::span<const int>(in[at]), std::span(out[at]), ReduceOp::sum, Mode::begin));
      if (i % 5 == 0) group.barrier();
    }
    for (Future& sum : sums) sum.wait();
    for (int i = 0; i < operations; ++i)
      require_that(
          out[static_cast<std::size_t>(i)] == std::vector<int>(in[static_cast<std::size_t>(i)].size(), 3 + 3 * i),
          "sum " + std::to_string(i));
  }),
            no_problems);
}

// Nobody is in a call: the thread sees the failure, and the operation holds nothing of its memory any more.
TEST(ProgressThread, ARankThatDiesWhileTheOthersComputeIsKnownToTheNextCall) {
  TestRanks ranks(2);
  ranks.progress_thread = true;
  ranks.timeout = 600;
  const auto problems = ranks.in_processes([](Group& group) {
    if (group.rank() == 1) {
      group.barrier();
      ::_exit(3);
    }
    std::vector<double> come(1 << 20);
    Future receiving = group.recv(std::span(come), 1, 0, Mode::begin);
    group.barrier();
    std::string why;
    try {
      receiving.wait();
    } catch (const Error& error) {
      why = error.what();
    }
    require_that(why.find("rank 1 (process") != std::string::npos, "not: " + why);
  });
  EXPECT_EQ(problems, (Problems{"rank 1: exit 3"}));
}

TEST(ProgressThread, SleepsUntilItIsWokenAndStopsWhenItIsTold) {
  std::atomic<int> turns{0};
  std::promise<void> first, second;
  CallLock program(false);
  program.add_thread();
  ProgressThread thread(program,
                        [&] {
                          const int turn = ++turns;
                          if (turn == 1) first.set_value();
                          if (turn == 2) second.set_value();
                          return Found::nothing;
                        },
                        {});
  thread.start();
  first.get_future().wait();
  thread.wake();
  second.get_future().wait();
  thread.stop();
  EXPECT_FALSE(thread.runs());
  const int before = turns;
  thread.wake();
  EXPECT_EQ(turns, before);
}

// If a call starts the thread, the call has the session alone until it ends.
TEST(ProgressThread, HasNoTurnBeforeTheCallThatStartsItHasEnded) {
  for (int time = 0; time < 50; ++time) {
    std::atomic<int> turns{0};
    std::promise<void> first;
    CallLock program(false);
    program.add_thread();
    ProgressThread thread(program,
                          [&] {
                            if (++turns == 1) first.set_value();
                            return Found::nothing;
                          },
                          {});
    ASSERT_TRUE(program.lock());
    thread.start();  // its thread runs when this returns
    for (int look = 0; look < 100; ++look) ::sched_yield();
    EXPECT_EQ(turns, 0);
    program.unlock();
    first.get_future().wait();
  }
}

TEST(ProgressThread, WhatIsWrongWithItsSettingsIsSaid) {
  const auto error = [](const char* name, const char* value) {
    const WithVariable variable(name, value);
    TestRanks ranks(1);
    const Problems problems = ranks.in_threads([](Group&) {});
    return problems.empty() ? std::string("none") : problems.front();
  };
  EXPECT_EQ(error("WAYWISER_PROGRESS_THREAD", "on"), "none");
  EXPECT_EQ(error("WAYWISER_PROGRESS_THREAD", "maybe"), "rank 0: WAYWISER_PROGRESS_THREAD='maybe' must be on or auto");
  EXPECT_EQ(error("WAYWISER_PROGRESS_CORE", "x"), "rank 0: WAYWISER_PROGRESS_CORE='x' must be the number of a core");
  EXPECT_EQ(error("WAYWISER_PROGRESS_CORE", "100000"),
            "rank 0: the progress thread cannot be bound to core 100000: this process may not use it");
}

}  // namespace
}  // namespace waywiser
