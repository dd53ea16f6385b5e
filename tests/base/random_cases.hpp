#pragma once

#include <cstdlib>

namespace waywiser {

// The number of cases of each property; a slow lane sets more.
inline unsigned random_cases(unsigned usual) {
  const char* wanted = std::getenv("WAYWISER_RANDOM_CASES");
  return wanted == nullptr ? usual : static_cast<unsigned>(std::strtoul(wanted, nullptr, 10));
}

}  // namespace waywiser
