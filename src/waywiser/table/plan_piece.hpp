#pragma once

#include "waywiser/base/units.hpp"

namespace waywiser {

class Chooser;

// How long the pieces of a table should be: from this size on messages of host memory between two processes reach nine
// tenths of their best rate, as the plan has measured them; at least a quarter of `usual`. Without a plan, nullptr, or
// such measurements: `usual`.
Bytes plan_piece(const Chooser* chooser, Bytes usual);

}  // namespace waywiser
