#pragma once

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/sim/node_model.hpp"

namespace waywiser::sim {

// Times {"trials": [{"cluster", "operation", "algorithm", "ranks", "bytes", "chunk", "direct": "off"|"on"|"best",
// "job_bytes", "order": ["gpu0", ..], "groups": [[..], ..], "protocol", "beside": another trial with "nodes"}]} and
// answers {"simulated": true, "results":
// [{"seconds", "messages", "rounds", "rounds_run", "bytes"} or {"unavailable"}]}; algorithm "nccl" has "chosen":
// {"algorithm", "protocol", "tried": [{"algorithm", "protocol", "seconds" or "unavailable"}]}. With "trace": true the
// last result has a Chrome trace. `others`: further types of node. `progress` returns false to stop.
Json simulate_collectives(const NodeModel& node, const std::vector<const NodeModel*>& others, const Json& request,
                          const ProgressCallback& progress);

}  // namespace waywiser::sim
