#pragma once

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/sim/timing.hpp"

namespace waywiser::sim {

// {"kind": "fat-tree", "nodes": 1024, "taper": 2, "radix": 36, "shape": [..], "sick": [{"index": 3, "share": 0}],
//  "nvlink_domain": 72, "in_network_reduction": true, "port_rate": 5e10, "types": [0, 0, 1]}; all but "nodes" may be
// left out. "types": of each node, 0 for the first type of node, 1 for the first of the others.
// Throws invalid_input.
ClusterSpec cluster_from_json(const Json& value, std::string_view what);

// Times {"paths": [{"path", "from_node", "to_node"}], "operations": [..], "sizes": [..]} and answers
// {"simulated": true, "results": [{"path", "label", "operation", "points": [{"bytes", "seconds"}]} or {..,
// "unavailable"}], "assumed": [{"part", "parameter", "what", "assumed"}]}. With "trace": true each result has the
// Chrome trace of its last size. `progress` returns false to stop.
Json simulate_paths(const NodeModel& node, const std::vector<const NodeModel*>& others, const Json& request,
                    const ProgressCallback& progress);

}  // namespace waywiser::sim
