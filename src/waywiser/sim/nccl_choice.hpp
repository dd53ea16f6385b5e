#pragma once

#include "waywiser/sim/collective_run.hpp"

namespace waywiser::sim {

// The fastest of what NCCL has for the collective, by the times of the model: rings and trees by each protocol, NVLS
// where NVSwitches add, CollNet where the switches of the network do. NCCL takes what its own table of latencies and
// bandwidths says is the fastest (src/graph/tuning.cc).
Ran nccl_choice(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace);

// NVLS: a GPU reads its part of the sum from the NVSwitch, which reads it from all n GPUs and adds, and writes it to
// the NVSwitch, which writes it to all. Each direction of a GPU's NVLinks carries 1 + 1 / n of the bytes:
//   T = nccl.nvls_start + bytes (1 + 1 / n) / (nccl.nvls_share of the NVLinks)
// Throws unavailable: several nodes, or no NVSwitch that adds.
Ran nvls_all_reduce(World& world, const CollectiveTrial& trial, int ranks, Trace* trace);

}  // namespace waywiser::sim
