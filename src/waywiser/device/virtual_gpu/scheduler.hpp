#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "waywiser/device/virtual_gpu/work_queue.hpp"

namespace waywiser {

// Who runs the work of the virtual streams: a thread for each stream, or, with a seed, whoever waits: then one item
// at a time, the stream drawn by a generator, so that the same program gives the same interleaving.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed) : seeded_(seed != 0), generator_(seed) {}

  bool seeded() const noexcept { return seeded_; }
  void add(const std::shared_ptr<WorkQueue>& queue);
  void remove(const std::shared_ptr<WorkQueue>& queue);
  // Seeded: runs one item of some stream, or says that none can run.
  bool progress();
  // Runs or lets run until `condition`; false when the deadline passed first.
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
