#include "waywiser/measure/disturbance.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {
namespace {

constexpr double much_waiting = 0.2;  // of the time, for a CPU that somebody else has
constexpr Seconds shortest_sleep = 1e-3;

std::atomic<unsigned> continued = 0;
static_assert(std::atomic<unsigned>::is_always_lock_free);

void count_continue(int) { continued.fetch_add(1, std::memory_order_relaxed); }

// Nobody else in this process may want to know. The default action, going on, happens anyway.
bool watch_continue() {
  struct sigaction now{}, ours{};
  if (::sigaction(SIGCONT, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return false;
  ours.sa_handler = count_continue;
  ours.sa_flags = SA_RESTART;
  return ::sigaction(SIGCONT, &ours, nullptr) == 0;
}

Seconds seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Only one of the two clocks goes on in suspend.
Seconds slept() { return seconds_of(CLOCK_BOOTTIME) - seconds_of(CLOCK_MONOTONIC); }

// The kernel's counters of this thread: time on a CPU, time ready but waiting for one, number of turns. 0 if unknown.
Seconds waited() {
  static thread_local const Descriptor file(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  std::array<char, 96> text{};
  if (!file.open() || ::pread(file.number(), text.data(), text.size() - 1, 0) <= 0) return 0;
  char* next = nullptr;
  std::strtoull(text.data(), &next, 10);
  return static_cast<double>(std::strtoull(next, nullptr, 10)) * 1e-9;
}

}  // namespace

Disturbance::Disturbance() {
  static const bool watched = watch_continue();
  static_cast<void>(watched);
  continued_ = continued.load(std::memory_order_relaxed);
  slept_ = slept();
  waited_ = waited();
  began_ = now_seconds();
}

std::string Disturbance::disturbed() const {
  const Seconds passed = now_seconds() - began_;
  if (continued.load(std::memory_order_relaxed) != continued_) return "the process was stopped";
  if (slept() - slept_ > shortest_sleep) return "the machine slept";
  if (waited() - waited_ > much_waiting * passed) return "other programs took the CPU";
  return {};
}

}  // namespace waywiser
