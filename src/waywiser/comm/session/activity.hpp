#pragma once

#include <memory>
#include <string>

#include "waywiser/comm/session/call.hpp"

namespace waywiser {

// Something under way that needs turns of its owner's thread.
class Activity {
 public:
  virtual ~Activity() = default;
  // Goes on as far as it can without waiting. True: complete.
  virtual bool advance() = 0;
  virtual const Call& call() const = 0;
  // What has arrived so far, for whoever waits too long: "800 of 1600 bytes from rank 2".
  virtual std::string progress_text() const = 0;
  // It will not be completed: takes no more of the caller's memory. What others hold of it is in Engine::held() then.
  virtual void abandon() noexcept = 0;
  // False: it goes on by itself; advance() is only to be asked.
  virtual bool needs_turns() const noexcept { return true; }

  bool under_way = false;  // the session's
  // The caller's memory, where the operation keeps it until it is over.
  std::shared_ptr<void> keeps;
};

}  // namespace waywiser
