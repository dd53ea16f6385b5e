#pragma once

#include <mutex>

#include "waywiser/base/profiler_range.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// While this object lives, this rank is in a call, which is a range in the timeline of a profiler; the call ends when
// it returns or throws. `ranges`: nullptr for what programs and waits do over and over.
class InCall {
 public:
  InCall(Session& session, const Call& call, const RangeFunctions* ranges = range_functions())
      : lock_(session), session_(session), range_(ranges, [&] { return text(call); }) {
    session_.begin(call);
  }
  ~InCall() { session_.end(); }

 private:
  const std::lock_guard<Session> lock_;
  Session& session_;
  const ProfilerRange range_;
};

}  // namespace waywiser
