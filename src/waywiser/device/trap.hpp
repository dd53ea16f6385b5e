#pragma once

#include <exception>

namespace waywiser {

// Thrown by a kernel body on a virtual GPU where a real kernel would trap: no more work runs there, and every later
// call of this process reports it. `ends`: the kernel only ends, before its time, and the next work runs.
struct Trap : std::exception {
  explicit Trap(bool only_ends = false) : ends(only_ends) {}
  const char* what() const noexcept override { return ends ? "a kernel has given up" : "a kernel has trapped"; }
  bool ends;
};

}  // namespace waywiser
