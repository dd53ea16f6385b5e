#include "waywiser/storage/turns.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace waywiser {
namespace {

TEST(Turns, ComeInTheOrderInWhichThreadsHaveAsked) {
  Turns turns;
  std::vector<int> order;  // under the lock
  const auto take = [&](int who) {
    const std::lock_guard turn(turns);
    order.push_back(who);
  };
  turns.lock();
  std::vector<std::thread> others;
  for (int who = 1; who <= 3; ++who) {
    others.emplace_back(take, who);
    while (turns.waiting() != static_cast<std::uint64_t>(who)) std::this_thread::yield();
  }
  turns.unlock();
  take(4);  // which a std::mutex would most likely give it before it wakes the others
  for (std::thread& each : others) each.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(turns.waiting(), 0u);
}

}  // namespace
}  // namespace waywiser
