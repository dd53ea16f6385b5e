#include "waywiser/storage/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

namespace waywiser {
namespace {

TEST(Turns, WhoComesAgainAndAgainGoesBeforeOthersAFewTimesAlone) {
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
  for (int call = 0; call < 1000; ++call) take(0);
  for (std::thread& each : others) each.join();
  EXPECT_EQ(turns.waiting(), 0u);
  ASSERT_EQ(order.size(), 1003u);
  std::ptrdiff_t most = 0;
  for (int who = 1; who <= 3; ++who) {
    most += Turns::most_before;
    EXPECT_LE(std::ranges::find(order, who) - order.begin(), most) << who;
    ++most;
  }
}

}  // namespace
}  // namespace waywiser
