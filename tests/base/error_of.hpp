#pragma once

#include <functional>
#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {

// The text of the error that a call throws; "no error" if it returns.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace waywiser
