#pragma once

#include <string>

#include "waywiser/base/units.hpp"

namespace waywiser {

inline constexpr Seconds longest_timeout = 1e7;

// The longest time of any wait: WAYWISER_TIMEOUT, or 60 s. Throws invalid_input.
Seconds usual_timeout();

// Returns `timeout` if it is above 0. Throws invalid_input with a text that begins with `what`.
Seconds checked_timeout(Seconds timeout, const std::string& what);

}  // namespace waywiser
