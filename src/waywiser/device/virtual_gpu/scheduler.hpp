#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "waywiser/device/virtual_gpu/work_queue.hpp"

namespace waywiser {

// Runs the work of virtual streams: one thread for each stream; or, with a seed, the waiting thread, one item at a time
// from a randomly drawn stream, so that the same program gives the same interleaving.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed) : seeded_(seed != 0), generator_(seed) {}

  bool seeded() const noexcept { return seeded_; }
  void add(const std::shared_ptr<WorkQueue>& queue);
  void remove(const std::shared_ptr<WorkQueue>& queue);
  // Seeded: runs one item of some stream. False: none can run.
  bool progress();
  // Runs work, or lets it run, until `condition` holds; false if the deadline passed first.
  template <typename Condition>
  bool run_until(Condition condition, Deadline deadline) {
    for (unsigned turn = 0; !condition(); ++turn) {
      const bool moved = seeded_ && progress();
      if (moved) continue;
      if (deadline.passed()) return condition();
      pause(turn);
    }
    return true;
  }
  // Gives the processor away, for longer when it has been in vain for long.
  static void pause(unsigned turn);

 private:
  bool seeded_;
  std::mutex mutex_;
  std::mt19937_64 generator_;
  std::vector<std::shared_ptr<WorkQueue>> queues_;  // in the order of opening
};

// Runs one queue on a thread of its own until destroyed; work that cannot run then is abandoned.
class Worker {
 public:
  explicit Worker(std::shared_ptr<WorkQueue> queue);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  void serve();

  std::shared_ptr<WorkQueue> queue_;
  std::atomic<bool> stop_{false};
  std::jthread thread_;
};

}  // namespace waywiser
