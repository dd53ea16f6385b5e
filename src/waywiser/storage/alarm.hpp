#pragma once

#include <functional>
#include <memory>

#include "waywiser/base/units.hpp"

namespace waywiser {

// If this is still there after so many seconds, a thread of its own calls `late`, which throws nothing. Its end waits
// for a call that has begun. Costs no other thread a turn before that.
class Alarm {
 public:
  Alarm(Seconds after, std::function<void()> late);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

 private:
  struct Armed;
  class Clock;
  std::shared_ptr<Armed> armed_;
};

}  // namespace waywiser
