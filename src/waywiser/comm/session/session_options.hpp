#pragma once

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"

namespace waywiser {

// Fills unset options from the environment. Throws invalid_input, naming the variable.
JoinOptions with_environment(JoinOptions options);

// The limit of every wait.
Seconds timeout_of(const JoinOptions& options);

}  // namespace waywiser
