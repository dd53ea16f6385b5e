#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/session/call_lock.hpp"

namespace waywiser {

// Advances a rank's operations while the program is in no call of the group (also called CPU proxy). Sleeps while
// nothing is under way.
class ProgressThread {
 public:
  enum class Found { nothing, waits, moved, end };  // the operations found; end: no more turns

  // Gives no turn before start(). `turn` is called while no call of the program holds the lock, and must not throw.
  // `core`: the only core of the thread.
  ProgressThread(CallLock& lock, std::function<Found()> turn, std::optional<int> core);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  // In a forked process there is no thread to end.
  ~ProgressThread();

  // Call it once.
  void start();
  // An operation is under way, or has failed. Callable from any thread.
  void wake() noexcept;
  // After it returns the thread gives no more turns. The caller may hold the lock.
  void stop() noexcept;
  bool runs() const noexcept { return runs_; }

 private:
  void run();
  Found turn();
  void sleep();

  CallLock& lock_;
  const std::function<Found()> turn_;
  const std::optional<int> core_;
  const int process_;
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  std::atomic<bool> asked_{false}, asleep_{false}, stopping_{false}, runs_{true};
  std::thread thread_;
};

// "not bound to a core", "bound to core 3".
std::string core_text(std::optional<int> core);
// Throws invalid_input if this process must not run on the core.
void check_core(int core);

}  // namespace waywiser
