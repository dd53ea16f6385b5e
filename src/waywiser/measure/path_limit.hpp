#pragma once

#include "waywiser/measure/meter.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// The limit of a path's slowest hop in one direction, from the topology. Unknown (0) within one memory and between host
// memories, where caches are faster than any link, and for split paths over several routes.
Limit path_limit(const Topology& topology, const Path& path);

}  // namespace waywiser
