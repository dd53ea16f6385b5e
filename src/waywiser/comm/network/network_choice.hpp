#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/policy/plan.hpp"

namespace waywiser {

// Variables of UCX (without UCX_) that keep the messages of a group between machines to the transports and devices that
// the plan's rows from host memory to host memory of the other machine name. Empty: the plan has no such rows.
std::vector<std::pair<std::string, std::string>> network_choice(const Plan& plan);

}  // namespace waywiser
