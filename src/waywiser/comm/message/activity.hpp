#pragma once

#include <memory>
#include <string>

#include "waywiser/comm/message/call.hpp"

namespace waywiser {

// An operation under way that its owner's thread must advance.
class Activity {
 public:
  virtual ~Activity() = default;
  // Advances as far as possible without waiting. True: complete.
  virtual bool advance() = 0;
  virtual const Call& call() const = 0;
  // The progress so far, for timeout errors: "800 of 1600 bytes from rank 2".
  virtual std::string progress_text() const = 0;
  // The operation will not complete: it no longer touches the caller's memory. Memory that others still hold is then in
  // Engine::held().
  virtual void abandon() noexcept = 0;
  // False: it progresses by itself; advance() only polls.
  virtual bool needs_turns() const noexcept { return true; }
  // Time beyond the timeout, for an operation that ends by itself then, with a better reason.
  virtual Seconds extra_time() const noexcept { return 0; }
  // The wait for it has failed: throws a better reason, if it knows one.
  virtual void explain() {}

  bool under_way = false;  // set by the session
  // The caller's memory, if the operation keeps it until it is over.
  std::shared_ptr<void> keeps;
};

}  // namespace waywiser
