#pragma once

#include "waywiser/sim/collective_run.hpp"

namespace waywiser::sim {

// What NCCL would take of what it has for the collective: rings and trees by each protocol, NVLS and NVLSTree where
// NVSwitches add, CollNet where the switches of the network do. NCCL takes what its own table of latencies and
// bandwidths says is the fastest (src/graph/tuning.cc); here that is the time of the model, with NCCL's base latencies
// in place of measured ones and without what its table leaves out. The time of the answer has both.
Ran nccl_choice(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace);

}  // namespace waywiser::sim
