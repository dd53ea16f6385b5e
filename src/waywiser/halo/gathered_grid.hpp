#pragma once

#include "waywiser/halo/grid.hpp"

namespace waywiser {

class Group;

// The grid of ranks that each know only their own box: `grid` without boxes, and this rank's. Collective. Throws
// invalid_input at all ranks if they have other shapes, widths or periodic dimensions.
[[gnu::visibility("default")]] HaloGrid gathered_grid(Group& group, HaloGrid grid, const GridBox& mine);

}  // namespace waywiser
