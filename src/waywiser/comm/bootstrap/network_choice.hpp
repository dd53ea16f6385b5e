#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/policy/plan.hpp"

namespace waywiser {

// UCX variables (without UCX_) that restrict a group's messages between machines to the transports and devices in the
// plan's rows from host memory to host memory of the other machine. Empty: the plan has no such rows.
std::vector<std::pair<std::string, std::string>> network_choice(const Plan& plan);

}  // namespace waywiser
