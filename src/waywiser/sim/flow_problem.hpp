#pragma once

#include "waywiser/base/json.hpp"

namespace waywiser::sim {

// {"capacities": [bytes per second, ..], "flows": [{"links": [0, 3], "bytes": 1e6, "begin": 0.5}]} -> [seconds, ..]:
// when each flow ends. For comparisons with other simulators. Throws invalid_input.
Json flow_ends(const Json& problem);

}  // namespace waywiser::sim
