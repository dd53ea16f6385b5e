#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Persistent threads, so that starting them is not part of a measurement. The caller is member 0.
class MeasuringThreads {
 public:
  MeasuringThreads() = default;
  MeasuringThreads(const MeasuringThreads&) = delete;
  MeasuringThreads& operator=(const MeasuringThreads&) = delete;
  ~MeasuringThreads();

  using Work = std::function<void(int)>;
  // Runs work(0) ... work(members-1) at the same time, after all members have ended `before`, if it is given. Returns
  // the time from the common start until the last one ended. Rethrows the first exception after all have ended.
  Seconds run(int members, const Work& work, const Work& before = {});

 private:
  void grow(int members);
  void live(int member);
  void take_part(int member);
  void attempt(const Work& work, int member);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t generation_ = 0;
  bool closing_ = false;
  int members_ = 1;
  const Work* work_ = nullptr;
  const Work* before_ = nullptr;
  std::atomic<int> arrived_ = 0, warm_ = 0, ended_ = 0;
  std::vector<std::exception_ptr> failures_;
  std::vector<Seconds> end_times_, start_times_;
  std::vector<std::thread> threads_;
};

}  // namespace waywiser
