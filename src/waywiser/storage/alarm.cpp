#include "waywiser/storage/alarm.hpp"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/storage/of_this_process.hpp"

namespace waywiser {

struct Alarm::Armed {
  std::chrono::steady_clock::time_point at;
  std::function<void()> late;
  bool rings = false, over = false;  // under the clock's lock
};

// A thread that sleeps until the next alarm. It is not woken when one is armed or goes, unless it sleeps for longer.
class Alarm::Clock {
 public:
  void arm(const std::shared_ptr<Armed>& alarm) {
    const std::lock_guard guard(lock_);
    try {
      if (!runs_) started_thread([this] { run(); }).detach();
      runs_ = true;
    } catch (const Error&) {  // no memory for a thread: it does not ring
    }
    armed_.insert(alarm);
    if (alarm->at < wakes_) changed_.notify_all();
  }

  void disarm(const std::shared_ptr<Armed>& alarm) {
    std::unique_lock guard(lock_);
    armed_.erase(alarm);
    changed_.wait(guard, [&] { return !alarm->rings || alarm->over; });
  }

 private:
  using Time = std::chrono::steady_clock::time_point;

  void run() {
    std::unique_lock guard(lock_);
    for (;;) {
      wakes_ = Time::max();
      for (const std::shared_ptr<Armed>& each : armed_) wakes_ = std::min(wakes_, each->at);
      if (wakes_ == Time::max())
        changed_.wait(guard);
      else
        changed_.wait_until(guard, wakes_);
      for (auto each = armed_.begin(); each != armed_.end();)
        each = (*each)->at <= std::chrono::steady_clock::now() && ring(*each) ? armed_.erase(each) : std::next(each);
    }
  }

  // False: there is no thread for it now.
  bool ring(const std::shared_ptr<Armed>& alarm) {
    try {
      started_thread([this, alarm] {
        alarm->late();
        const std::lock_guard guard(lock_);
        alarm->over = true;
        changed_.notify_all();
      }).detach();
    } catch (const Error&) {
      alarm->at += std::chrono::milliseconds(100);
      return false;
    }
    return alarm->rings = true;
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<Armed>> armed_;
  Time wakes_ = Time::max();
  bool runs_ = false;
};

Alarm::Alarm(Seconds after, std::function<void()> late)
    : armed_(std::make_shared<Armed>(
          std::chrono::steady_clock::now() +
              std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(after)),
          std::move(late))) {
  of_this_process<Clock>().arm(armed_);
}

Alarm::~Alarm() { of_this_process<Clock>().disarm(armed_); }

}  // namespace waywiser
