#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"

namespace waywiser {

inline Deadline soon() { return Deadline::in(20); }

inline std::string message_of(const std::function<void()>& action, ErrorKind kind) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.kind()), name(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace waywiser
