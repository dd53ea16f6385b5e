#pragma once

#include "waywiser/measure/meter.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// The limit of the slowest hop of a path's steps in one direction, from the topology. Unknown (0) within one memory and
// between host memories, where caches are faster than any link, between machines, and for split paths.
Limit path_limit(const Topology& topology, const Path& path);

}  // namespace waywiser
