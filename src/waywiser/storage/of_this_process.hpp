#pragma once

#include <unistd.h>

#include <atomic>
#include <mutex>

namespace waywiser {

// One object that stays until the process ends, and has threads: a process that is forked from this one makes its own.
template <typename Object>
Object& of_this_process() {
  struct Owned {
    pid_t process = ::getpid();
    Object object;
  };
  static std::mutex lock;
  static std::atomic<Owned*> made{nullptr};
  if (Owned* found = made; found != nullptr && found->process == ::getpid()) return found->object;
  const std::lock_guard guard(lock);
  if (made == nullptr || made.load()->process != ::getpid()) made = new Owned;
  return made.load()->object;
}

}  // namespace waywiser
