#include "waywiser/comm/session/call_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace waywiser {
namespace {

bool refused_elsewhere(CallLock& lock) {
  bool refused = false;
  std::thread([&] {
    refused = !lock.lock();
    if (!refused) lock.unlock();
  }).join();
  return refused;
}

TEST(CallLock, KeepsOtherThreadsOutAndNests) {
  CallLock lock(false);
  EXPECT_FALSE(refused_elsewhere(lock));
  ASSERT_TRUE(lock.lock() && lock.lock());
  lock.unlock();
  EXPECT_TRUE(refused_elsewhere(lock));
  lock.unlock();
  EXPECT_FALSE(refused_elsewhere(lock));
}

TEST(CallLock, NeverHasTwoThreads) {
  std::atomic<int> both{0}, calls{0};
  for (int turn = 0; turn < 500; ++turn) {
    CallLock lock(false);
    std::atomic<int> here{0}, inside{0};
    const auto call = [&](int me) {
      ++here;
      while (here != 2) {
      }
      for (int tries = 0; tries < 50; ++tries) {
        if (!lock.lock()) continue;
        inside.store(me, std::memory_order_relaxed);  // an exchange would hide a store that is late
        for (int look = 0; look < 10; ++look)
          if (inside.load(std::memory_order_relaxed) != me) both = 1;
        lock.unlock();
        ++calls;
      }
    };
    std::thread second(call, 2);
    call(1);
    second.join();
    ASSERT_TRUE(lock.lock()) << "nobody is in it";
    EXPECT_TRUE(refused_elsewhere(lock));
    lock.unlock();
  }
  EXPECT_EQ(both, 0);
  EXPECT_GT(calls, 500);
}

TEST(CallLock, HoldsBetweenCalls) {
  CallLock lock(false);
  ASSERT_TRUE(lock.hold() && lock.hold() && lock.lock());
  lock.unlock();
  lock.let_go();
  EXPECT_TRUE(refused_elsewhere(lock));
  lock.let_go();
  EXPECT_FALSE(refused_elsewhere(lock));
}

// And the call that comes back has what it had.
TEST(CallLock, LetsDestructorsInWhereACallRests) {
  CallLock lock(false);
  ASSERT_TRUE(lock.lock() && lock.lock());
  const CallLock::Left left = lock.rest();
  EXPECT_TRUE(refused_elsewhere(lock));
  std::thread([&] {
    const WhenFree free(lock);
    EXPECT_TRUE(lock.is_mine());
  }).join();
  lock.come_back(left);
  lock.unlock();
  EXPECT_TRUE(refused_elsewhere(lock));
  lock.unlock();
  EXPECT_FALSE(refused_elsewhere(lock));
}

TEST(CallLock, ACallRestsWhereNobodyElseIs) {
  CallLock lock(false);
  ASSERT_TRUE(lock.lock());
  lock.come_back(lock.rest());
  ASSERT_TRUE(lock.lock());
  lock.unlock();
  lock.unlock();
  EXPECT_FALSE(lock.is_mine());
  ASSERT_TRUE(lock.lock());
  lock.come_back(lock.rest());
  lock.unlock();
  EXPECT_FALSE(refused_elsewhere(lock));
}

// A destructor in another thread must not make a call fail.
TEST(CallLock, ACallWaitsForADestructor) {
  CallLock lock(false);
  lock.lock_when_free();
  bool locked = false;
  std::thread caller([&] {
    locked = lock.lock();
    lock.unlock();
  });
  EXPECT_TRUE(lock.is_mine());
  lock.unlock();
  caller.join();
  EXPECT_TRUE(locked);
}

bool thread_has_a_turn(CallLock& lock) {
  bool has_one = false;
  std::thread([&] {
    has_one = lock.try_turn_of_thread();
    if (!has_one) return;
    EXPECT_TRUE(lock.lock()) << "in its turn it may do what calls do";
    lock.unlock();
    {
      const WhenFree free(lock);
    }
    lock.end_turn_of_thread();
  }).join();
  return has_one;
}

TEST(CallLock, TheProgressThreadHasItsTurnsBetweenCalls) {
  CallLock lock(false);
  ASSERT_TRUE(lock.lock());
  lock.add_thread();
  EXPECT_FALSE(thread_has_a_turn(lock));
  const CallLock::Left left = lock.step_out();
  EXPECT_TRUE(thread_has_a_turn(lock));
  EXPECT_TRUE(refused_elsewhere(lock));
  ASSERT_TRUE(lock.lock()) << "the thread that has stepped out may call";
  EXPECT_FALSE(thread_has_a_turn(lock));
  lock.unlock();
  EXPECT_TRUE(thread_has_a_turn(lock));
  lock.come_back(left);
  EXPECT_FALSE(thread_has_a_turn(lock));
  lock.unlock();
  EXPECT_TRUE(thread_has_a_turn(lock));
}

TEST(CallLock, ThreadsThatShareARankTakeTurns) {
  CallLock lock(true);
  long sum = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int turn = 0; turn < 2000; ++turn) {
        ASSERT_TRUE(lock.lock());
        if (turn % 3 == 0) lock.come_back(lock.step_out());
        ++sum;
        lock.unlock();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 4 * 2000);
}

}  // namespace
}  // namespace waywiser
