#pragma once

#include <sched.h>

#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {

// Until a thread of this rank is in such a call.
inline void wait_until_in(const Group& group, CallKind kind) {
  const Deadline deadline = Deadline::in(60);
  while (current_call(group).kind != kind) {
    if (deadline.passed()) throw Error(ErrorKind::timeout, "no thread is in " + std::string(name(kind)));
    ::sched_yield();
  }
}

}  // namespace waywiser
