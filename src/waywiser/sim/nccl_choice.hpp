#pragma once

#include "waywiser/sim/collective_run.hpp"

namespace waywiser::sim {

// The fastest of what NCCL has for the collective, by the times of the model: rings and trees by each protocol, NVLS
// and NVLSTree where NVSwitches add, CollNet where the switches of the network do. NCCL takes what its own table of
// latencies and bandwidths says is the fastest (src/graph/tuning.cc).
Ran nccl_choice(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace);

}  // namespace waywiser::sim
