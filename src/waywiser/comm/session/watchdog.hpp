#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/message/on_failure.hpp"

namespace waywiser {

class Lifeline;

// A host thread that watches operations waiting on a GPU, while the host may be elsewhere: it prints failures, reports
// them to the other ranks, and ends GPU waits when the group has failed. It sleeps except for an occasional poll.
class Watchdog {
 public:
  // Something that waits on a GPU.
  class Ward {
   public:
    virtual ~Ward() = default;
    // The failure on the GPU, if any. `group`: why the group has failed, or empty. Makes no device call.
    virtual std::optional<Error> failure(const std::string& group) const = 0;
    // Whether device calls report a failure there.
    virtual bool is_gone() const = 0;
    // The group has failed: operations that wait on the GPU must not continue.
    virtual void stop() noexcept = 0;
    // Waits until all enqueued work has ended. Throws its error, if no call has thrown it yet.
    virtual void settle() = 0;
    // Nothing is enqueued any more: closes the memory of other ranks, whose owners will free it soon.
    virtual void let_go() noexcept = 0;
  };

  Watchdog(Lifeline& lifeline, OnFailure on_failure);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void add(Ward& ward);
  // After it returns, nobody uses the ward.
  void remove(Ward& ward);
  // Reports failures that no poll has seen yet, as the process ends. For any thread.
  void report();
  // Called by the thread that adds and removes wards.
  void settle();
  void let_go() noexcept;

 private:
  struct Watched {
    Ward* ward;
    bool told = false, stopped = false, gone = false;
    Seconds told_at = 0;
  };
  std::vector<Ward*> wards();
  void watch();
  void look_at(Watched& watched);
  void tell(const Error& why);
  void see_it_gone(Watched& watched);

  Lifeline& lifeline_;
  OnFailure on_failure_;
  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  std::vector<Watched> wards_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace waywiser
