#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace waywiser {

// A lock that keeps nobody out for long: who comes while others wait may go before them a few times, since to wake a
// thread takes long, and then they have their turns in the order in which they have asked. A std::mutex lets who calls
// again and again go before them for ever. For std::lock_guard.
class Turns {
 public:
  static constexpr int most_before = 8;  // calls that go before the one that waits longest

  void lock() {
    std::unique_lock guard(lock_);
    const bool others_wait = served_ != asked_;
    if (!taken_ && (!others_wait || before_ < most_before)) {
      before_ += others_wait ? 1 : 0;
    } else {
      const std::uint64_t mine = asked_++;
      changed_.wait(guard, [&] { return !taken_ && served_ == mine; });
      ++served_;
      before_ = 0;
    }
    taken_ = true;
  }
  void unlock() {
    const std::lock_guard guard(lock_);
    taken_ = false;
    if (served_ != asked_) changed_.notify_all();
  }
  // Those that wait for their turn now.
  std::uint64_t waiting() {
    const std::lock_guard guard(lock_);
    return asked_ - served_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::uint64_t asked_ = 0, served_ = 0;  // of those that have waited
  int before_ = 0;
  bool taken_ = false;
};

}  // namespace waywiser
