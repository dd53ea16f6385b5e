#pragma once

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"

namespace waywiser {

// What is left open, as the environment says. Throws invalid_input naming the variable.
JoinOptions with_environment(JoinOptions options);

// Of every wait.
Seconds timeout_of(const JoinOptions& options);

}  // namespace waywiser
