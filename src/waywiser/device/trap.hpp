#pragma once

#include <exception>

namespace waywiser {

// Thrown by a kernel body on a virtual GPU where a real kernel would trap: no more work runs there, and every later
// call of this process reports it.
struct Trap : std::exception {
  const char* what() const noexcept override { return "a kernel has trapped"; }
};

}  // namespace waywiser
