#pragma once

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace waywiser {

// Persistent threads, parked between jobs: after a job they poll for the next one for some microseconds, then sleep.
// The caller is member 0. A job is cut into shares; each member takes its own share first, then shares that nobody has
// taken, so that a member that wakes late, or not at all, only costs its help. Used by one thread at a time.
class ThreadTeam {
 public:
  explicit ThreadTeam(int members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int members() const noexcept { return static_cast<int>(threads_.size()) + 1; }
  // Runs job(share) once for each of the shares 0 to `shares` - 1, at most one for each member, and returns when all
  // have ended. The job must not throw.
  void run(int shares, const std::function<void(int)>& job);

 private:
  void serve(int member);
  bool beside_caller() const;
  void move_away() const;
  std::uint64_t next_round(std::uint64_t seen);
  void take_shares(int first, std::uint64_t round);
  bool claim(int share, std::uint64_t round);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> round_{0};  // its number and its shares, in one word
  std::atomic<int> ended_{0}, asleep_{0};
  std::atomic<int> caller_cpu_{-1};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* job_ = nullptr;    // of this round; read only by owners of a share
  std::vector<std::atomic<std::uint64_t>> claimed_;  // by share: the last round in which it was taken
  cpu_set_t allowed_;
  std::vector<std::jthread> threads_;
};

}  // namespace waywiser
