#pragma once

#include "waywiser/measure/meter.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// What the slowest hop of a path allows in one direction, from the topology. Not known (0) within one memory and
// between memories of the host, where caches answer faster than any link, and for split paths over several routes.
Limit path_limit(const Topology& topology, const Path& path);

}  // namespace waywiser
