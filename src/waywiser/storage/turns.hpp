#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace waywiser {

// A lock that threads get in the order in which they have asked: who calls again and again does not keep others out, as
// with std::mutex. For std::lock_guard.
class Turns {
 public:
  void lock() {
    std::unique_lock guard(lock_);
    const std::uint64_t mine = asked_++;
    changed_.wait(guard, [&] { return served_ == mine; });
  }
  void unlock() {
    const std::lock_guard guard(lock_);
    ++served_;
    if (served_ != asked_) changed_.notify_all();
  }
  // Those that wait for their turn now.
  std::uint64_t waiting() {
    const std::lock_guard guard(lock_);
    return served_ == asked_ ? 0 : asked_ - served_ - 1;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::uint64_t asked_ = 0, served_ = 0;
};

}  // namespace waywiser
