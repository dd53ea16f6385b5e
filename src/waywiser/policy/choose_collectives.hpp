#pragma once

#include "waywiser/policy/envelope.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

// The rows of a plan for the collectives that the profile has measured.
std::vector<CollectiveRow> choose_collectives(const Profile& profile, const Hysteresis& hysteresis);

}  // namespace waywiser
