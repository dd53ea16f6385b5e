#pragma once

#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {

// The text of the error that `work` throws.
template <typename Work>
std::string failure(Work work) {
  try {
    work();
  } catch (const Error& problem) {
    return std::string(name(problem.kind())) + ": " + problem.what();
  }
  return "nothing";
}

}  // namespace waywiser
