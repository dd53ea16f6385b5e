#include "waywiser/device/virtual_gpu/work_queue.hpp"

#include <chrono>
#include <thread>

#include "waywiser/device/trap.hpp"
#include "waywiser/device/virtual_gpu/bus.hpp"

namespace waywiser {
namespace {

void finish(const std::shared_ptr<EventPoint>& point, EventPoint::State state) {
  if (!point) return;
  point->at = now_seconds();
  point->state.store(state, std::memory_order_release);
}

}  // namespace

void WorkQueue::push(WorkItem item) {
  if (trapped_) throw_trapped(place_);
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  changed_.notify_all();
}

bool WorkQueue::empty() const {
  const std::lock_guard lock(mutex_);
  return items_.empty();
}

// Only the stepping thread removes items, so the first one stays where it is while others push.
const WorkItem* WorkQueue::head() const {
  const std::lock_guard lock(mutex_);
  return items_.empty() ? nullptr : &items_.front();
}

bool WorkQueue::runnable() const {
  const WorkItem* item = head();
  return item != nullptr && (trapped_ || (!dead_ && (!item->ready || item->ready())));
}

WorkQueue::Step WorkQueue::step() {
  auto* item = const_cast<WorkItem*>(head());
  if (item == nullptr) return Step::idle;
  if (!trapped_ && (dead_ || (item->ready && !item->ready()))) return Step::blocked;
  if (delay_ > 0) std::this_thread::sleep_for(std::chrono::duration<double>(delay_));
  execute(*item);
  item->run = nullptr;  // destroys its objects before anyone hears that it has ended
  item->ready = nullptr;
  {
    const std::lock_guard lock(mutex_);
    items_.pop_front();
  }
  changed_.notify_all();
  return Step::ran;
}

void WorkQueue::execute(WorkItem& item) {
  bool failed = trapped_;
  {
    const std::lock_guard lock(mutex_);
    failed = failed || error_.has_value();
  }
  std::optional<Error> error;
  try {
    if (!failed && item.run) item.run();
  } catch (const Trap& trap) {
    if (!trap.ends) trapped_ = failed = true;
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::exception& caught) {
    error.emplace(ErrorKind::device, item.what + " failed on " + text(place_) + ": " + caught.what());
  }
  finish(item.point, failed || error ? EventPoint::failed : EventPoint::done);
  const std::lock_guard lock(mutex_);
  if (error) error_ = std::move(error);
}

void WorkQueue::abandon() {
  std::deque<WorkItem> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(items_);
  }
  for (const WorkItem& item : left) finish(item.point, EventPoint::failed);
  changed_.notify_all();
}

void WorkQueue::wait_for_work(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop || !items_.empty(); });
}

void WorkQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

bool WorkQueue::wait_until_empty(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.at(), [&] { return items_.empty(); });
}

std::string WorkQueue::describe() const {
  const std::lock_guard lock(mutex_);
  if (items_.empty()) return "no work is left";
  if (dead_) return "it is dead; next would be " + items_.front().what;
  return "it stands at " + items_.front().what;
}

void WorkQueue::throw_error() {
  if (trapped_) throw_trapped(place_);
  std::optional<Error> error;
  {
    const std::lock_guard lock(mutex_);
    error.swap(error_);
  }
  if (error) throw Error(*error);
}

}  // namespace waywiser
