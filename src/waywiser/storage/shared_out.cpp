#include "waywiser/storage/shared_out.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/base/started_thread.hpp"
#include "waywiser/storage/of_this_process.hpp"

namespace waywiser {
namespace {

// One call. A helper that comes when the work is over finds it closed: nobody waits for a helper that the system has
// not run yet.
class SharedWork {
 public:
  SharedWork(std::size_t count, const std::function<void(unsigned, std::size_t)>& work) : count_(count), work_(work) {}

  void help(unsigned worker) {
    {
      const std::lock_guard guard(lock_);
      if (closed_) return;
      ++inside_;
    }
    take(worker);
    const std::lock_guard guard(lock_);
    if (--inside_ == 0) left_.notify_all();
  }

  void take(unsigned worker) {
    try {
      for (std::size_t i = next_++; i < count_; i = next_++) work_(worker, i);
    } catch (...) {
      next_ = count_;
      const std::lock_guard guard(lock_);
      if (!first_) first_ = std::current_exception();
    }
  }

  // Nobody works on it afterwards.
  void close() {
    std::unique_lock guard(lock_);
    closed_ = true;
    left_.wait(guard, [this] { return inside_ == 0; });
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::size_t count_;
  const std::function<void(unsigned, std::size_t)>& work_;
  std::atomic<std::size_t> next_{0};
  std::mutex lock_;
  std::condition_variable left_;
  unsigned inside_ = 0;
  bool closed_ = false;
  std::exception_ptr first_;
};

// Threads that stay until the process ends: to start one takes longer than to read a piece.
class Helpers {
 public:
  // As workers 1 to `count`.
  void invite(const std::shared_ptr<SharedWork>& work, unsigned count) {
    std::unique_lock guard(lock_);
    for (unsigned worker = 1; worker <= count; ++worker) invited_.push_back({work, worker});
    try {
      for (wanted_at_once_ += count; threads_ < wanted_at_once_; ++threads_) started_thread([this] { run(); }).detach();
    } catch (const Error&) {  // no memory for a thread: those that are there do the work
    }
    guard.unlock();
    for (unsigned i = 0; i < count; ++i) come_.notify_one();
  }

  void withdraw(const std::shared_ptr<SharedWork>& work, unsigned count) {
    const std::lock_guard guard(lock_);
    wanted_at_once_ -= count;
    std::erase_if(invited_, [&](const Invitation& each) { return each.work == work; });
  }

 private:
  struct Invitation {
    std::shared_ptr<SharedWork> work;
    unsigned worker = 0;
  };

  void run() {
    std::unique_lock guard(lock_);
    for (;;) {
      come_.wait(guard, [this] { return !invited_.empty(); });
      const Invitation mine = invited_.front();
      invited_.pop_front();
      guard.unlock();
      mine.work->help(mine.worker);
      guard.lock();
    }
  }

  std::mutex lock_;
  std::condition_variable come_;
  std::deque<Invitation> invited_;
  std::size_t threads_ = 0, wanted_at_once_ = 0;
};

}  // namespace

void share_out(std::size_t count, unsigned threads, const std::function<void(unsigned, std::size_t)>& work) {
  const auto workers = static_cast<unsigned>(std::min<std::size_t>(threads, count));
  if (workers < 2) {
    for (std::size_t i = 0; i < count; ++i) work(0, i);
    return;
  }
  const auto shared = std::make_shared<SharedWork>(count, work);
  Helpers& helpers = of_this_process<Helpers>();
  helpers.invite(shared, workers - 1);
  shared->take(0);
  helpers.withdraw(shared, workers - 1);
  shared->close();
}

void share_out(PieceQueue& pieces, unsigned threads, const std::function<void(unsigned, const FilePart&)>& work) {
  share_out(std::min<std::size_t>(threads, pieces.all().size()), threads, [&](unsigned, std::size_t worker) {
    try {
      while (const FilePart* piece = pieces.take()) work(static_cast<unsigned>(worker), *piece);
    } catch (...) {
      pieces.withdraw();
      throw;
    }
  });
}

}  // namespace waywiser
