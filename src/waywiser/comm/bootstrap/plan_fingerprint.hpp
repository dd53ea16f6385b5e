#pragma once

#include <string>

namespace waywiser {

class Chooser;

// Equal for equal plans: ranks with different plans cannot form a group.
std::string plan_fingerprint(const Chooser& chooser);

}  // namespace waywiser
