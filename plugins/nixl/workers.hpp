#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "request.hpp"

namespace waywiser_nixl {

// Threads that carry out requests, all of them the same one, in the order in which these came.
class Workers {
 public:
  explicit Workers(int threads);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();  // what they have not begun stays undone

  void give(std::shared_ptr<Request> request);

 private:
  void run();
  void stop() noexcept;
  std::shared_ptr<Request> next();

  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<std::shared_ptr<Request>> requests_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace waywiser_nixl
