#include "waywiser/measure/start_barrier.hpp"

#include <thread>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds grace = 5;

}  // namespace

void StartBarrier::wait(Deadline deadline) {
  const Deadline last = Deadline::in(deadline.left() + grace);
  come_.fetch_add(1);
  while (come_.load(std::memory_order_acquire) < members_) {
    if (called_off()) throw Error(ErrorKind::io, "another pair failed before all were ready");
    if (last.passed()) throw Error(ErrorKind::timeout, "another pair is not ready");
    std::this_thread::yield();
  }
}

void StartBarrier::call_off(std::exception_ptr reason) noexcept {
  const std::scoped_lock lock(mutex_);
  if (reason_) return;
  reason_ = std::move(reason);
  off_.store(true, std::memory_order_release);
}

void StartBarrier::rethrow() const {
  const std::scoped_lock lock(mutex_);
  if (reason_) std::rethrow_exception(reason_);
}

}  // namespace waywiser
