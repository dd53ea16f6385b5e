#include "waywiser/kernels/block/waiter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <thread>

namespace waywiser::block {
namespace {

// Two threads of a warp that run as apart as a GPU lets them: one looks at the data of a line, the other at its tag.
struct Warp {
  std::barrier<> vote{2}, join{2};
  std::atomic<bool> voted = false, data_thread_joins = false;
  std::atomic<int> data_looks = 0;
  std::atomic<int> data = 0, tag = 0;
};

class ThreadOfWarp {
 public:
  static constexpr unsigned looks = 4;
  static constexpr bool may_leave = true;

  ThreadOfWarp(Warp& warp, bool sees_tag) : warp_(warp), sees_tag_(sees_tag) {}
  void join_warp() {
    if (!sees_tag_) warp_.data_thread_joins = true;
    warp_.join.arrive_and_wait();
    warp_.data_thread_joins = false;
  }
  void join_whole_warp() { join_warp(); }
  bool all(bool value) {
    if (sees_tag_) warp_.voted = value;
    warp_.vote.arrive_and_wait();
    const bool result = warp_.voted;
    warp_.vote.arrive_and_wait();
    return result;
  }
  void pause() {}

 private:
  Warp& warp_;
  bool sees_tag_;
};

// The line arrives while the thread that polls the tag checks its deadline and the other polls again or waits for it.
// Faults: gpus L
TEST(Waiter, ThreadsOfAWarpLookTogetherAfterSomeHaveLookedAround) {
  Warp warp;
  int seen = -1;
  std::thread data_thread([&] {
    ThreadOfWarp thread(warp, false);
    const auto missing = [&] {
      seen = warp.data;
      ++warp.data_looks;
      return 0u;
    };
    Waiter<ThreadOfWarp>::wait_together(thread, missing, [](unsigned, unsigned, Seen before) { return before; });
  });
  ThreadOfWarp thread(warp, true);
  int times = 0;
  const auto look_around = [&](unsigned, unsigned, Seen before) {
    while (warp.data_looks <= static_cast<int>(ThreadOfWarp::looks) && !warp.data_thread_joins)
      std::this_thread::yield();
    warp.data = 7;
    warp.tag = 1;
    ++times;
    return before;
  };
  Waiter<ThreadOfWarp>::wait_together(thread, [&] { return warp.tag == 1 ? 0u : 1u; }, look_around);
  data_thread.join();
  EXPECT_EQ(times, 1);
  EXPECT_EQ(seen, 7) << "what the slot held before the line came";
}

}  // namespace
}  // namespace waywiser::block
