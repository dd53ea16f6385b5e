#pragma once

#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/sim/node_model.hpp"

namespace waywiser::sim {

// Transfers that begin at once, each along its own path, and share hops, copy engines and the threads of the ranks:
// {"cluster", "transfers": [{"path", "from_node", "to_node", "bytes"}]} gives {"simulated": true, "seconds": until the
// last one has ended, "ends": [of each], "assumed"}. Throws invalid_input; unavailable for a path that does not serve
// its pair.
Json simulate_exchange(const NodeModel& node, const Json& request);

}  // namespace waywiser::sim
