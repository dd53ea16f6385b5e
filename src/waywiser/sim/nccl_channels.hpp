#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/sim/collective_run.hpp"

// How NCCL runs a collective: one channel for each NIC of a node, each with an equal share of the elements and an order
// of the GPUs of its own, which begins at the GPU beside that NIC. All channels run at once. A message to the next node
// leaves by the GPU beside the NIC of its rail (PXN, NCCL's default from 2.12 on), and a reduction goes on while its
// bytes arrive.
namespace waywiser::sim {

// A short message uses fewer channels: each has at least so many bytes (NCCL, src/enqueue.cc: 512 threads of 64 bytes).
inline constexpr Bytes nccl_channel_bytes = 32768;

// "nccl_ring": NCCL's ring; "nccl_tree": chains of the GPUs within the nodes, two binary trees of the nodes between
// them.
bool of_nccl_channels(std::string_view algorithm);
// Why NCCL's algorithm does not serve this: it has no such operation, or the ranks are not all GPUs of their nodes.
std::optional<std::string> why_not_nccl(const CollectiveTrial& trial, int ranks, int ranks_of_node);
// The routes of each channel of this many ranks. Between nodes: the trial's order of GPUs, else that of the fastest
// cycle over up to 9 GPUs of a node, rotated; as many as the type of node has that has the fewest. Within a node: one
// channel, or those of the cycles over its mesh of NVLinks.
std::vector<RankRoutes> nccl_channels(World& world, const CollectiveTrial& trial, PeerCopies peers, int ranks);
// A rank's part in one of the two trees of a channel, each for half of its elements: from the last GPU of a node to the
// first one, from there up a tree of the first ones of all nodes, and back, in pieces.
Schedule nccl_tree(const CollectiveCall& call, int ranks_of_node, int tree);

}  // namespace waywiser::sim
