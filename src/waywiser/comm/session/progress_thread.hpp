#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Gives what a rank has under way its turns while the program is in no call of the group (the field's words: progress
// thread, CPU proxy). Sleeps while nothing is under way. Whoever holds the lock is the only one that uses the session.
class ProgressThread {
 public:
  enum class Found { nothing, waits, moved, end };  // what is under way; end: there will be no more turns

  // Gives no turn before start(). `turn` is called with the lock held; it throws nothing. `core`: the only one that it
  // may run on.
  ProgressThread(std::function<Found()> turn, std::optional<int> core);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  // In a forked process nothing is there to be ended.
  ~ProgressThread();

  // Once.
  void start();
  // A call of the program begins, and ends. Calls nest. A call that waits gives all turns itself.
  void lock() noexcept {
    callers_.fetch_add(1);
    mutex_.lock();
  }
  void unlock() noexcept {
    mutex_.unlock();
    callers_.fetch_sub(1);
  }
  // Something is under way, or has failed. From any thread.
  void wake() noexcept;
  // Gives no more turns when it returns. The caller may hold the lock.
  void stop() noexcept;
  bool runs() const noexcept { return runs_; }

 private:
  void run();
  Found turn();
  void sleep();

  const std::function<Found()> turn_;
  const std::optional<int> core_;
  const int process_;
  std::recursive_mutex mutex_;
  std::atomic<int> callers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  std::atomic<bool> asked_{false}, asleep_{false}, stopping_{false}, runs_{true};
  std::thread thread_;
};

// "not bound to a core", "bound to core 3".
std::string core_text(std::optional<int> core);
// Of this process. Throws invalid_input: it must not run there.
void check_core(int core);

}  // namespace waywiser
