#include "waywiser/storage/shared_out.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <vector>

#include "waywiser/base/started_thread.hpp"

namespace waywiser {

void share_out(std::size_t count, unsigned threads, const std::function<void(unsigned, std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::exception_ptr first;
  const auto take = [&](unsigned worker) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(worker, i);
    } catch (...) {
      next = count;
      const std::lock_guard guard(lock);
      if (!first) first = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned worker = 1; worker < std::min<std::size_t>(threads, count); ++worker)
      others.push_back(started_thread([&take, worker] { take(worker); }));
  } catch (...) {
    next = count;
    first = std::current_exception();
  }
  take(0);
  for (std::thread& each : others) each.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace waywiser
