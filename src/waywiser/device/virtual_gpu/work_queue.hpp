#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

// One recording of an event. Failed: the work before it failed, or its stream was closed first.
struct EventPoint {
  enum State { pending, done, failed };
  Place place;
  std::atomic<State> state = pending;
  Seconds at = 0;  // written before state is done
};

struct WorkItem {
  std::string what;                   // "a copy"
  std::function<void()> run;          // may throw
  std::function<bool()> ready;        // empty: at once
  std::shared_ptr<EventPoint> point;  // set when the item has run
};

// The work of one stream, in order. Any thread pushes; one thread at a time steps.
class WorkQueue {
 public:
  // trapped: of the GPU, set when a kernel traps; no item runs then. dead: no item ever runs. delay: before each item.
  WorkQueue(Place place, std::atomic<bool>& trapped, bool dead, Seconds delay)
      : place_(place), trapped_(trapped), dead_(dead), delay_(delay) {}

  Place place() const noexcept { return place_; }
  // Throws device when a kernel has trapped.
  void push(WorkItem item);
  bool empty() const;

  enum class Step { idle, blocked, ran };
  Step step();
  bool runnable() const;  // step() would run an item
  // Fails the events that are left and drops the work.
  void abandon();

  // Until work comes or `stop`.
  void wait_for_work(const std::atomic<bool>& stop);
  void wake();
  // Until all work has ended: false when the deadline passed first.
  bool wait_until_empty(Deadline deadline);

  // What the next item is and that it is stuck, for messages.
  std::string describe() const;
  // Throws the first error of the work since the last call, or that a kernel has trapped.
  void throw_error();

 private:
  const WorkItem* head() const;
  void execute(WorkItem& item);

  Place place_;
  std::atomic<bool>& trapped_;
  bool dead_;
  Seconds delay_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkItem> items_;
  std::optional<Error> error_;
};

}  // namespace waywiser
