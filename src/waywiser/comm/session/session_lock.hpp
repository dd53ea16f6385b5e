#pragma once

#include "waywiser/comm/session/call_lock.hpp"

namespace waywiser {

// Held around everything that the program does with a session (std::lock_guard, in destructors WhenFree).
class SessionLock {
 public:
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

  // Throws invalid_input if another thread is in a call; waits for a turn if the threads share the rank.
  void lock() {
    if (!lock_.lock()) [[unlikely]]
      refuse_thread();
  }
  void unlock() noexcept { lock_.unlock(); }
  // Keeps other threads out between calls. Throws as lock().
  void hold() {
    if (!lock_.hold()) refuse_thread();
  }
  void let_go() noexcept { lock_.let_go(); }
  CallLock& call_lock() noexcept { return lock_; }

 protected:
  explicit SessionLock(bool shared) : lock_(shared) {}
  ~SessionLock() = default;
  [[noreturn]] virtual void refuse_thread() const = 0;

  CallLock lock_;
};

}  // namespace waywiser
