#include "waywiser/device/virtual_gpu/scheduler.hpp"

#include <chrono>

namespace waywiser {

void Scheduler::add(const std::shared_ptr<WorkQueue>& queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(queue);
}

void Scheduler::remove(const std::shared_ptr<WorkQueue>& queue) {
  while (!queue->empty() && progress()) {
  }
  const std::lock_guard lock(mutex_);
  std::erase(queues_, queue);
  queue->abandon();
}

bool Scheduler::progress() {
  const std::lock_guard lock(mutex_);
  std::vector<WorkQueue*> runnable;
  for (const auto& queue : queues_)
    if (queue->runnable()) runnable.push_back(queue.get());
  if (runnable.empty()) return false;
  runnable[generator_() % runnable.size()]->step();
  return true;
}

void Scheduler::pause(unsigned turn) {
  if (turn < 200) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 2000 ? 20 : 200));
  }
}

Worker::Worker(std::shared_ptr<WorkQueue> queue) : queue_(std::move(queue)), thread_([this] { serve(); }) {}

Worker::~Worker() {
  stop_ = true;
  queue_->wake();
  thread_.join();
  queue_->abandon();
}

void Worker::serve() {
  for (unsigned turn = 0;;) {
    switch (queue_->step()) {
      case WorkQueue::Step::ran: turn = 0; break;
      case WorkQueue::Step::idle:
        if (stop_) return;
        queue_->wait_for_work(stop_);
        break;
      case WorkQueue::Step::blocked:
        if (stop_) return;
        Scheduler::pause(turn++);
        break;
    }
  }
}

}  // namespace waywiser
