#pragma once

#include <string>

namespace waywiser {

class Chooser;

// Equal for equal plans: ranks that follow different ones do not form a group.
std::string plan_fingerprint(const Chooser& chooser);

}  // namespace waywiser
