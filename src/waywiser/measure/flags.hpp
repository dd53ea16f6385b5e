#pragma once

#include <functional>

#include "waywiser/base/units.hpp"

namespace waywiser {

enum class Role { initiator, peer };

// How the two processes of a measurement wait for each other.
class Flags {
 public:
  virtual ~Flags() = default;
  virtual void tell() = 0;
  // Returns after the other process's next tell(); calls `idle`, if set, at every poll. Throws timeout, or io if the
  // other process has ended.
  virtual void wait(Deadline deadline, const std::function<void()>& idle = {}) = 0;
};

}  // namespace waywiser
