#pragma once

#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

inline constexpr Seconds longest_timeout = 1e7;

// The seconds that any wait may take: WAYWISER_TIMEOUT, or 60. Throws invalid_input.
Seconds usual_timeout();

// `timeout`, if it is a number of seconds above 0. Throws invalid_input that begins with `what`.
Seconds checked_timeout(Seconds timeout, const std::string& what);

}  // namespace waywiser
