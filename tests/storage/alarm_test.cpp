#include "waywiser/storage/alarm.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace waywiser {
namespace {

TEST(Alarm, RingsOnceInAnotherThreadAndItsEndWaitsForTheCall) {
  std::promise<std::thread::id> rung;
  std::promise<void> go_on;
  std::atomic<bool> over{false};
  auto alarm = std::make_unique<Alarm>(0.001, [&] {
    rung.set_value(std::this_thread::get_id());  // twice would throw
    go_on.get_future().wait();
    over = true;
  });
  EXPECT_NE(rung.get_future().get(), std::this_thread::get_id());
  EXPECT_FALSE(over);
  go_on.set_value();
  alarm.reset();
  EXPECT_TRUE(over);
}

TEST(Alarm, DoesNotRingWhenItHasGoneAndSoonerOnesRingFirst) {
  std::atomic<int> rung{0};
  for (int i = 0; i < 1000; ++i) const Alarm alarm(100, [&] { ++rung; });
  const Alarm late(100, [&] { ++rung; });
  std::promise<void> soon;
  const Alarm early(0.001, [&] { soon.set_value(); });
  soon.get_future().wait();
  EXPECT_EQ(rung, 0);
}

TEST(Alarm, ManyAtOnceRingAll) {
  std::atomic<int> rung{0};
  std::promise<void> all;
  std::vector<std::unique_ptr<Alarm>> alarms;
  for (int i = 0; i < 20; ++i)
    alarms.push_back(std::make_unique<Alarm>(0.001, [&] {
      if (++rung == 20) all.set_value();
    }));
  all.get_future().wait();
  alarms.clear();
  EXPECT_EQ(rung, 20);
}

}  // namespace
}  // namespace waywiser
