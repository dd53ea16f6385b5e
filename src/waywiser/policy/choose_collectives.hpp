#pragma once

#include "waywiser/policy/envelope.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

// The plan's rows for the collectives in the profile. The fastest algorithm on GPUs at the largest size, where the time
// may have run out, says little about larger sizes: its row ends at twice that size.
std::vector<PlanRow> choose_collectives(const Profile& profile, const Hysteresis& hysteresis);

}  // namespace waywiser
