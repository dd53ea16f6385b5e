#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/sim/schedule_run.hpp"

namespace waywiser::sim {

// A collective on the GPUs of a cluster.
struct CollectiveTrial {
  Collective operation = Collective::all_reduce;
  std::string algorithm;            // a row of algorithms(), "in_network", "nccl", or one of NCCL's: "nccl_ring", ...
  std::string protocol = "Simple";  // of NCCL's rings and trees; "nccl" takes the fastest of all
  int ranks = 0;                    // 0: all GPUs of the cluster
  std::vector<std::string> order;   // the GPUs of a node that its ranks have, one after the other; empty: all
  // Not for sums made by switches: groups of GPUs of a node, equally many in each. Each group with the same GPUs of the
  // other nodes runs the operation, all groups at once; empty: one group, with `order`.
  std::vector<std::vector<std::string>> groups;
  Bytes bytes = 0;  // of the whole buffer; of what each rank gives where blocks differ by rank
  Bytes chunk = 0;  // of pipelined algorithms; 0: their default
  DirectRdma direct = DirectRdma::best;
  bool pxn = false;  // as RankRoutes has it
  // Another job, which does the same again and again until this one has ended, on as many nodes as it says, the last
  // ones of the cluster. Rings, trees and the group's algorithms only.
  std::shared_ptr<const CollectiveTrial> beside{};
  int nodes = 0;  // of the cluster, from `first_node` on; 0: all that are not the other job's
  int first_node = 0;
  bool endless_job = false;        // a second job without end: each GPU sends to that of the node half a cluster away
  Bytes job_bytes = 0;             // a second job: each node also sends so many bytes to the node half a cluster away
  std::uint32_t most_rounds = 64;  // of each run of rounds that are alike, where one schedule stands for all; 0: all.
                                   // With a second job, which ends at some time, all are run.
};

// Elements are of 4 bytes. A neighbour exchange is a halo: six faces of a periodic box of ranks, of bytes / 6 each.
// Schedules in which every rank does as rank 0 does, with peers shifted, are made once. Where a root complex limits
// peer copies, the better of PeerCopies::best and staged. Throws invalid_input or unavailable.
Ran simulate(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace = nullptr);

// All-reduce by the switches: the GPUs of a node reduce among themselves over their own hops, each NIC sends its share
// up a tree of switches, which add, and gets the sum. Equations in in_network.cpp.
Ran in_network_all_reduce(World& world, const RankRoutes& routes, int ranks, Bytes bytes, Trace* trace);

}  // namespace waywiser::sim
