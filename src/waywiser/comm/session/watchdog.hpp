#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/session/on_failure.hpp"

namespace waywiser {

class Lifeline;

// A host thread beside what waits on a GPU, where nobody on the host may be looking: it prints what has failed there
// and tells the other ranks, and ends the waits there when the group has failed. Asleep but for a glance now and then.
class Watchdog {
 public:
  // Something that waits on a GPU.
  class Ward {
   public:
    virtual ~Ward() = default;
    // What has failed on the GPU. `group`: why the group has failed, or empty. Calls nothing of the device.
    virtual std::optional<Error> failure(const std::string& group) const = 0;
    // Whether calls of the device say that something has failed there.
    virtual bool is_gone() const = 0;
    // The group has failed: what waits on the GPU must not go on.
    virtual void stop() noexcept = 0;
    // Waits until what was enqueued has ended. Throws what it has failed with, if no call has thrown that yet.
    virtual void settle() = 0;
    // Nothing is enqueued any more: closes the memory of other ranks, whose own goes soon.
    virtual void let_go() noexcept = 0;
  };

  Watchdog(Lifeline& lifeline, OnFailure on_failure);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  void add(Ward& ward);
  // When it returns, nobody uses the ward any more.
  void remove(Ward& ward);
  // Of the thread that adds and removes.
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
  void tell(const std::string& why);
  void see_it_gone(Watched& watched);

  Lifeline& lifeline_;
  OnFailure on_failure_;
  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  std::vector<Watched> wards_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace waywiser
