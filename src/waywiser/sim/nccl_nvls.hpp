#pragma once

#include "waywiser/sim/collective_run.hpp"

// NCCL's all-reduces whose sums within a node are made by its NVSwitches. Of the GPUs of a node those beside its NICs
// are heads (within one node: all), each for an equal part of the bytes, in pieces; of a piece, one leg after the
// other:
//   a head reads its part of the sum from the NVSwitch, which reads it from all GPUs and adds,
//   the heads of a rail add over two binary trees of the nodes, each for half of the part, up, then down,
//   and a head writes the sum to the NVSwitch, which writes it to all.
// Legs of different pieces go on at once. With n GPUs a node, each direction of a GPU's NVLinks carries 1 + 1 / n of
// the bytes, at nccl.nvls_share of what NCCL reckons for them; the bus bandwidth of a rail is at most
// nccl.nvls_tree_rate_of_two (nodes) or _of_more. Latencies: nccl.nvls_start, with the start of the kernel, and
// nccl.nvls_tree_start for each level of the trees, up and down.
namespace waywiser::sim {

// "nccl_nvls": within a node; "nccl_nvls_tree": between nodes.
bool of_nvls(std::string_view algorithm);
// Throws unavailable: not these nodes, no all_reduce, or no NVSwitch that adds.
Ran nvls_all_reduce(World& world, const CollectiveTrial& trial, int ranks, Trace* trace);

}  // namespace waywiser::sim
