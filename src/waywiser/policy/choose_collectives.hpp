#pragma once

#include "waywiser/policy/envelope.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

// The rows of a plan for the collectives that the profile has measured. What was fastest on GPUs at the largest size,
// where the time may have run out, says little about larger ones: its row ends at twice that.
std::vector<CollectiveRow> choose_collectives(const Profile& profile, const Hysteresis& hysteresis);

}  // namespace waywiser
