#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Threads wait here for each other, so that they begin together to time. Each of them may call it off for all.
class StartBarrier {
 public:
  explicit StartBarrier(int members) : members_(members) {}

  // Returns when all have come. Throws io when it was called off, timeout some time after the deadline: those who did
  // not come have the same deadline, and know why.
  void wait(Deadline deadline);
  // The first reason counts.
  void call_off(std::exception_ptr reason) noexcept;
  bool called_off() const noexcept { return off_.load(std::memory_order_acquire); }
  // Throws the reason when it was called off.
  void rethrow() const;

 private:
  const int members_;
  std::atomic<int> come_ = 0;
  std::atomic<bool> off_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr reason_;
};

}  // namespace waywiser
