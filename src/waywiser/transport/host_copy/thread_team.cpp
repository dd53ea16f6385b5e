#include "waywiser/transport/host_copy/thread_team.hpp"

#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

constexpr Seconds look_for = 50e-6;

}  // namespace

ThreadTeam::ThreadTeam(int members) {
  for (int member = 1; member < members; ++member) threads_.emplace_back([this, member] { serve(member); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void ThreadTeam::run(int count, const std::function<void(int)>& job) {
  if (count > 1) {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    count_ = count;
    busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
  }
  if (count > 1) wake_.notify_all();
  job(0);
  if (count <= 1) return;
  for (unsigned turn = 0; busy_.load(std::memory_order_acquire) != 0; ++turn)
    if (turn > 2000) std::this_thread::yield();
}

void ThreadTeam::serve(int member) {
  for (std::uint64_t seen = 0; !stop_;) {
    seen = next_round(seen);
    if (stop_) return;
    if (member < count_) (*job_)(member);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

std::uint64_t ThreadTeam::next_round(std::uint64_t seen) {
  for (const Deadline deadline = Deadline::in(look_for); !deadline.passed() && !stop_;) {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    if (round != seen) return round;
  }
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [&] { return stop_ || round_.load(std::memory_order_acquire) != seen; });
  return round_.load(std::memory_order_acquire);
}

}  // namespace waywiser
