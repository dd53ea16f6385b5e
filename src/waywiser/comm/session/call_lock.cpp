#include "waywiser/comm/session/call_lock.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace waywiser {
namespace {

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

std::atomic<int> waiting_destructors{0};  // of the process
constexpr int most_naps = 20;

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Whether a thread of this process can make a barrier for all others.
bool has_barriers() noexcept {
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return registered;
}

}  // namespace

CallLock::CallLock(bool shared) noexcept : alone_(!shared && has_barriers()), shared_(shared), has_turns_(shared) {}

// After the barrier either the maker has seen that it is not alone, or this thread sees that the maker is inside.
void CallLock::end_alone() noexcept {
  alone_ = false;
  membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  is_known_ = true;
}

void CallLock::take_turn() noexcept {
  turns_.lock();
  owner_ = me();
}

bool CallLock::wait_for(std::uintptr_t other) noexcept {
  do {
    if ((other & brief) == 0 && holder_ != me()) return false;
    nap();
  } while (!take(other));
  return true;
}

void CallLock::take_when_free(std::uintptr_t mark) noexcept {
  for (std::uintptr_t other = 0; !take(other, mark);) nap();
}

void CallLock::lock_when_free() noexcept {
  if (is_thread()) return;
  if (!is_mine()) {
    if (shared_) {
      take_turn();
    } else {
      if (!is_owner()) {
        ++waiting_destructors;
        take_when_free(brief);
        --waiting_destructors;
      }
      if (has_turns_) turns_.lock();
    }
  }
  ++depth_;
}

bool CallLock::hold() noexcept {
  if (!lock()) return false;
  holder_ = me();
  ++holds_;
  unlock();
  return true;
}

void CallLock::let_go() noexcept {
  lock_when_free();
  if (--holds_ == 0) holder_ = 0;
  unlock();
}

void CallLock::add_thread() noexcept {
  if (!has_turns_ && depth_ != 0) turns_.lock();  // until the call around this one ends
  has_turns_ = true;
}

bool CallLock::try_turn_of_thread() noexcept {
  if (!turns_.try_lock()) return false;
  thread_ = me();
  return true;
}

void CallLock::end_turn_of_thread() noexcept {
  thread_ = 0;
  turns_.unlock();
}

CallLock::Left CallLock::step_out() noexcept {
  Left left;
  if (!has_turns_ || !is_mine()) return left;
  left.depth = std::exchange(depth_, 0);
  if (shared_)
    owner_ = 0;
  else
    ++out_;
  turns_.unlock();
  return left;
}

CallLock::Left CallLock::rest() noexcept {
  if (shared_ || !is_mine()) return step_out();
  const Left left{std::exchange(depth_, 0), std::exchange(out_, 0), holder_.exchange(me()), true};
  const bool has_turn = has_turns_;
  leave();
  if (has_turn) turns_.unlock();
  return left;
}

void CallLock::come_back(const Left& left) noexcept {
  if (left.depth == 0) return;
  if (shared_) {
    take_turn();
  } else {
    if (left.rests) {
      for (int naps = 0; waiting_destructors != 0 && naps < most_naps; ++naps) nap();
      take_when_free();
      holder_ = left.holder;
      out_ = left.out;
    } else {
      --out_;
    }
    if (has_turns_) turns_.lock();
  }
  depth_ = left.depth;
}

void CallLock::forked() noexcept {
  shared_ = has_turns_ = false;
  alone_ = false;
  if (is_owner()) return;
  inside_ = false;
  owner_ = 0;
  depth_ = out_ = 0;
  if (holder_ != me()) holder_ = 0;
}

}  // namespace waywiser
