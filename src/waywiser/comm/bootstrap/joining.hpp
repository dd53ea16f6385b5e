#pragma once

#include <functional>

#include "waywiser/comm/bootstrap/reception.hpp"

namespace waywiser {

// The side of the meeting of all ranks but rank 0: comes to rank 0, then to the rank above it in the tree, and receives
// those below it. Throws like meet().
Muster join(const Launch& launch, Joining mine, Deadline deadline, const std::function<bool()>& interrupted);

}  // namespace waywiser
