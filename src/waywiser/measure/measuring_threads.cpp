#include "waywiser/measure/measuring_threads.hpp"

#include <algorithm>

namespace waywiser {

MeasuringThreads::~MeasuringThreads() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void MeasuringThreads::grow(int members) {
  while (static_cast<int>(threads_.size()) + 1 < members) {
    const int member = static_cast<int>(threads_.size()) + 1;
    threads_.emplace_back([this, member] { live(member); });
  }
}

void MeasuringThreads::live(int member) {
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return closing_ || generation_ != seen; });
      if (closing_) return;
      seen = generation_;
      if (member >= members_) continue;
    }
    take_part(member);
  }
}

void MeasuringThreads::take_part(int member) {
  const auto self = static_cast<std::size_t>(member);
  const auto meet = [this](std::atomic<int>& here) {
    here.fetch_add(1);
    while (here.load() < members_) std::this_thread::yield();
  };
  meet(arrived_);
  if (*before_) {
    attempt(*before_, member);
    meet(warm_);
  }
  start_times_[self] = now_seconds();
  attempt(*work_, member);
  end_times_[self] = now_seconds();
  ended_.fetch_add(1);
}

// After a failure a member only keeps the others company.
void MeasuringThreads::attempt(const Work& work, int member) {
  std::exception_ptr& failure = failures_[static_cast<std::size_t>(member)];
  if (failure) return;
  try {
    work(member);
  } catch (...) {
    failure = std::current_exception();
  }
}

Seconds MeasuringThreads::run(int members, const Work& work, const Work& before) {
  const auto count = static_cast<std::size_t>(members);
  {
    const std::scoped_lock lock(mutex_);
    members_ = members;
    work_ = &work;
    before_ = &before;
    arrived_ = warm_ = ended_ = 0;
    failures_.assign(count, nullptr);
    start_times_.assign(count, 0);
    end_times_.assign(count, 0);
    grow(members);
    ++generation_;
  }
  wake_.notify_all();
  take_part(0);
  while (ended_.load() < members) std::this_thread::yield();
  for (const std::exception_ptr& failure : failures_)
    if (failure) std::rethrow_exception(failure);
  return *std::max_element(end_times_.begin(), end_times_.end()) -
         *std::min_element(start_times_.begin(), start_times_.end());
}

}  // namespace waywiser
