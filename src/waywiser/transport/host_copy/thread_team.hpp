#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace waywiser {

// Threads that stay and are parked between jobs: after a job they look for the next one for some microseconds, then
// sleep. The caller is member 0. Used by one thread at a time.
class ThreadTeam {
 public:
  explicit ThreadTeam(int members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int members() const noexcept { return static_cast<int>(threads_.size()) + 1; }
  // Runs job(member) for members 0 to count - 1 at once and returns when all have ended. The job must not throw.
  void run(int count, const std::function<void(int)>& job);

 private:
  void serve(int member);
  std::uint64_t next_round(std::uint64_t seen);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> round_{0};
  std::atomic<int> busy_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* job_ = nullptr;  // of this round
  int count_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace waywiser
