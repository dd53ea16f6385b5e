#pragma once

#include <exception>

namespace waywiser {

// What the body of a kernel throws on a virtual GPU where it would trap on a real one: no work runs there any more, and
// every later call of this process says so.
struct Trap : std::exception {
  const char* what() const noexcept override { return "a kernel has trapped"; }
};

}  // namespace waywiser
