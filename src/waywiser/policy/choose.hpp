#pragma once

#include "waywiser/policy/candidates.hpp"
#include "waywiser/policy/envelope.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

// For each class of pairs and operation of the profile: the path for each range of sizes, from 0 to the largest number
// of bytes. Sizes outside the measured ones use the nearest path, except above a size from which the path failed.
Plan choose(const Profile& profile, const MechanismOrder& order, const Hysteresis& hysteresis = {});

// {"tolerance": 0.04, "equal": 0.03, "switching": 0.03}, each in [0, 1]; missing keys keep their defaults. Throws
// invalid_input.
Hysteresis hysteresis_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
