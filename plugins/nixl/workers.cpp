#include "workers.hpp"

#include "quiet_thread.hpp"

namespace waywiser_nixl {

Workers::Workers(int threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.push_back(quiet_thread([this] { run(); }));
  } catch (...) {
    stop();
    throw;
  }
}

Workers::~Workers() { stop(); }

void Workers::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  given_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::give(std::shared_ptr<Request> request) {
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
  }
  given_.notify_all();
}

std::shared_ptr<Request> Workers::next() {
  std::unique_lock lock(mutex_);
  given_.wait(lock, [this] { return stopped_ || !requests_.empty(); });
  return stopped_ ? nullptr : requests_.front();
}

void Workers::run() {
  while (const std::shared_ptr<Request> request = next()) {
    if (request->copy_one_part()) continue;
    const std::lock_guard lock(mutex_);
    if (!requests_.empty() && requests_.front() == request) requests_.pop_front();
  }
}

}  // namespace waywiser_nixl
