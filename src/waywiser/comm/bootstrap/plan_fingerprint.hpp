#pragma once

#include <string>
#include <string_view>

namespace waywiser {

class Chooser;
struct Plan;

// Equal for equal plans: ranks with different plans cannot form a group.
std::string plan_fingerprint(const Chooser& chooser);
// Equal where the machine and those rows are whose partner begins with this word, "NCCL".
std::string plan_fingerprint(const Plan& plan, std::string_view partner);

}  // namespace waywiser
