#include "waywiser/comm/session/progress_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"

namespace waywiser {
namespace {

constexpr Seconds busy_for = 100e-6;  // after progress; then it sleeps for an eighth of the time since
constexpr Seconds longest_nap = 1e-3;

void bind_to(int core) {
  ::cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof set, &set));  // check_core() has looked
}

}  // namespace

ProgressThread::ProgressThread(CallLock& lock, std::function<Found()> turn, std::optional<int> core)
    : lock_(lock), turn_(std::move(turn)), core_(core), process_(::getpid()) {}

void ProgressThread::start() {
  thread_ = started_thread([this] { run(); });
}

ProgressThread::~ProgressThread() {
  if (::getpid() == process_)
    stop();
  else
    static_cast<void>(new std::thread(std::move(thread_)));
}

void ProgressThread::wake() noexcept {
  asked_ = true;
  if (!asleep_) return;
  {
    const std::lock_guard lock(sleep_mutex_);
  }
  woken_.notify_one();
}

void ProgressThread::stop() noexcept {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::sleep() {
  std::unique_lock lock(sleep_mutex_);
  asleep_ = true;
  woken_.wait(lock, [this] { return asked_.exchange(false) || stopping_; });
  asleep_ = false;
}

// Never waits for the lock: the program has priority.
ProgressThread::Found ProgressThread::turn() {
  if (!lock_.try_turn_of_thread()) return Found::waits;
  const Found found = turn_();
  lock_.end_turn_of_thread();
  return found;
}

void ProgressThread::run() {
  if (core_) bind_to(*core_);
  for (Seconds moved_at = now_seconds(); !stopping_;) {
    const Found found = turn();
    if (found == Found::end) break;
    if (found == Found::nothing) sleep();
    if (found != Found::waits) moved_at = now_seconds();
    const Seconds quiet = now_seconds() - moved_at;
    if (quiet < busy_for)
      ::sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(quiet / 8, longest_nap)));
  }
  runs_ = false;
}

std::string core_text(std::optional<int> core) {
  return core ? "bound to core " + std::to_string(*core) : "not bound to a core";
}

void check_core(int core) {
  ::cpu_set_t set;
  CPU_ZERO(&set);
  const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
  if (core < 0 || core >= CPU_SETSIZE || (known && !CPU_ISSET(static_cast<unsigned>(core), &set)))
    throw Error(ErrorKind::invalid_input, "the progress thread cannot be bound to core " + std::to_string(core) +
                                              ": this process may not use it");
}

}  // namespace waywiser
