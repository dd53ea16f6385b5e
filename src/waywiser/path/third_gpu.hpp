#pragma once

#include <vector>

#include "waywiser/device/place.hpp"
#include "waywiser/topology/graph.hpp"

namespace waywiser {

// GPUs through which a copy between two others can go, the best connected first: those that both ends reach directly,
// then by the slower of the two legs.
std::vector<Place> third_gpus(const Graph& graph, Place source, Place destination);

// An NVLink that no third device and no NVSwitch shares: its bandwidth adds to that of other ways.
bool own_nvlink(const Graph& graph, Place a, Place b);

}  // namespace waywiser
