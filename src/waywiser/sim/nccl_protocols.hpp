#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "waywiser/sim/collective_run.hpp"

// NCCL's protocols: how a receiver knows that data have come. Simple: data, a fence, then a flag. LL: a flag of 4 bytes
// beside every 4 bytes. LL128: a flag of 8 bytes beside every 120, whose order only NVLinks keep. The numbers are costs
// nccl.*, with their sources in parts.json; NCCL reckons bandwidths as bus bandwidths, a tree's as twice its own. Over
// a network a message by LL takes what a route has, with LL in place of data, fence and flag; the others take longer by
// what NCCL reckons.
namespace waywiser::sim {

inline constexpr std::array nccl_protocols{"Simple", "LL128", "LL"};

struct NcclProtocol {
  double share = 1;              // of the rates of the hops
  BytesPerSecond most = no_cap;  // bus bandwidth of all channels together
  // Latency of a message beyond that of data, fence and flag, which routes have; negative for LL.
  Seconds later = 0;          // within a node
  Seconds later_between = 0;  // and between nodes
  Seconds base = 0;           // of the whole operation, beyond that of LL
  Seconds reckoned_base = 0;  // and what NCCL takes for it when it chooses
};

// What NCCL reckons that the NVLinks of a GPU carry: nccl.nvlink_rate of each. No limit where it has no such number.
BytesPerSecond nccl_nvlink_rate(const NodeModel& node);
// Of several types of node the slowest counts. Throws invalid_input: there is no such protocol.
NcclProtocol nccl_protocol(const std::vector<const NodeModel*>& types, const CollectiveTrial& trial, int nodes);
// Why a channel cannot run it: LL128 needs NVLinks between neighbours, and NICs no farther than PCIe switches.
std::optional<std::string> why_not_protocol(const RankRoutes& channel, const CollectiveTrial& trial, int nodes);

}  // namespace waywiser::sim
