#include "waywiser/transport/host_copy/thread_team.hpp"

#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

constexpr Seconds look_for = 50e-6;
constexpr unsigned turns_before_yielding = 2000;
constexpr std::uint64_t next_round_up = 1 << 16;  // a round's number is above, its number of shares below

int shares_of(std::uint64_t round) { return static_cast<int>(round % next_round_up); }

}  // namespace

ThreadTeam::ThreadTeam(int members) : claimed_(static_cast<std::size_t>(members)) {
  CPU_ZERO(&allowed_);
  ::sched_getaffinity(0, sizeof allowed_, &allowed_);
  for (int member = 1; member < members; ++member) threads_.emplace_back([this, member] { serve(member); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void ThreadTeam::run(int shares, const std::function<void(int)>& job) {
  if (shares <= 1) return job(0);
  job_ = &job;
  ended_.store(0, std::memory_order_relaxed);
  const std::uint64_t last = round_.load(std::memory_order_relaxed);
  const std::uint64_t round = (last / next_round_up + 1) * next_round_up + static_cast<std::uint64_t>(shares);
  caller_cpu_.store(::sched_getcpu(), std::memory_order_relaxed);
  round_.store(round);
  if (asleep_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }  // a member about to sleep has seen the round or gets the wake-up
    wake_.notify_all();
  }
  take_shares(0, round);
  for (unsigned turn = 0; ended_.load(std::memory_order_acquire) < shares; ++turn)
    if (turn > turns_before_yielding) std::this_thread::yield();
}

void ThreadTeam::take_shares(int first, std::uint64_t round) {
  const int shares = shares_of(round);
  for (int i = 0; i < shares; ++i) {
    const int share = (first + i) % shares;
    if (!claim(share, round)) continue;
    (*job_)(share);
    ended_.fetch_add(1, std::memory_order_release);
  }
}

// A round ends only when all its shares have been claimed: a late member finds each of them marked with this round or a
// later one.
bool ThreadTeam::claim(int share, std::uint64_t round) {
  std::atomic<std::uint64_t>& mark = claimed_[static_cast<std::size_t>(share)];
  std::uint64_t last = mark.load(std::memory_order_relaxed);
  return last < round && mark.compare_exchange_strong(last, round, std::memory_order_acq_rel);
}

void ThreadTeam::serve(int member) {
  for (std::uint64_t seen = 0; !stop_;) {
    seen = next_round(seen);
    if (beside_caller()) move_away();
    if (!stop_ && member < shares_of(seen)) take_shares(member, seen);
  }
}

bool ThreadTeam::beside_caller() const { return ::sched_getcpu() == caller_cpu_.load(std::memory_order_relaxed); }

// The system likes to wake a member on the CPU of its caller; there it would work and look for work in the caller's
// time, even while another CPU idles.
void ThreadTeam::move_away() const {
  cpu_set_t others = allowed_;
  CPU_CLR(static_cast<std::size_t>(caller_cpu_.load(std::memory_order_relaxed)), &others);
  if (CPU_COUNT(&others) != 0) ::sched_setaffinity(0, sizeof others, &others);
}

std::uint64_t ThreadTeam::next_round(std::uint64_t seen) {
  for (const Deadline deadline = Deadline::in(look_for); !deadline.passed() && !stop_ && !beside_caller();) {
    const std::uint64_t round = round_.load(std::memory_order_acquire);
    if (round != seen) return round;
  }
  std::unique_lock lock(mutex_);
  asleep_.fetch_add(1);
  wake_.wait(lock, [&] { return stop_ || round_.load() != seen; });
  asleep_.fetch_sub(1);
  return round_.load(std::memory_order_acquire);
}

}  // namespace waywiser
