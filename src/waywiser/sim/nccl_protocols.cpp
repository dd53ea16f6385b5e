#include "waywiser/sim/nccl_protocols.hpp"

#include <algorithm>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"

namespace waywiser::sim {
namespace {

BytesPerSecond rate_of(const NodeModel& node, const char* cost) {
  const double rate = node.costs()[cost];
  return rate > 0 ? rate : no_cap;
}

// 0: no share of its own, as with the other shares among the costs.
double share(const Costs& costs, const char* cost) { return costs[cost] > 0 ? costs[cost] : 1; }

double share_of_ll(const Costs& costs, const CollectiveTrial& trial, bool tree, int nodes) {
  if (tree) return share(costs, "nccl.tree_share") * share(costs, "nccl.ll_tree_share");
  const bool gathers = nodes == 1 && trial.operation != Collective::all_reduce;
  return share(costs, gathers ? "nccl.ll_gather_share" : "nccl.ll_ring_share");
}

double share_of_ll128(const Costs& costs, bool tree, int nodes) {
  if (!tree) return share(costs, "nccl.ll128_ring_share");
  const char* of_tree = nodes == 1 ? "nccl.ll128_tree_node_share" : "nccl.ll128_tree_share";
  return share(costs, "nccl.tree_share") * share(costs, of_tree);
}

}  // namespace

BytesPerSecond nccl_nvlink_rate(const NodeModel& node) {
  const std::vector<std::string> gpus = node.topology().ids("gpu");
  int links = 0;
  for (const Link& link : node.topology().links)
    if (link.kind == "nvlink" && !gpus.empty() && (link.a == gpus.front() || link.b == gpus.front()))
      links += link.count;
  return links > 0 ? rate_of(node, "nccl.nvlink_rate") * links : no_cap;
}

namespace {

// NCCL's latencies of a step over NVLinks have those of the links in them, which routes have, too.
Seconds latency_of_nvlinks(const NodeModel& node) {
  const auto of_gpus = [](const Link& link) { return link.kind == "nvlink"; };
  if (std::ranges::none_of(node.topology().links, of_gpus)) return 0;
  return node.costs()["nvlink.hop"] * (node.topology().ids("nvswitch").empty() ? 1 : 2);
}

NcclProtocol protocol_of(const NodeModel& node, const CollectiveTrial& trial, int nodes) {
  const Costs& costs = node.costs();
  const bool tree = trial.algorithm == "nccl_tree";
  const auto of_algorithm = [&](const std::string& ring, const std::string& tree_too) {
    return costs[tree ? tree_too : ring];
  };
  const Seconds ll = costs["nccl.ll_start"] - costs["step.start"], links = latency_of_nvlinks(node);
  NcclProtocol found{tree ? share(costs, "nccl.tree_share") : 1, no_cap, ll - links, ll};
  if (trial.protocol == "Simple") {
    found.base = costs["nccl.simple_base"];
    found.reckoned_base = costs["nccl.simple_reckoned_base"];
    found.later = of_algorithm("nccl.simple_ring_start", "nccl.simple_tree_start") - costs["step.start"] - links;
    found.later_between += of_algorithm("nccl.simple_ring_network", "nccl.simple_tree_network");
  } else if (trial.protocol == "LL128") {
    found.base = costs["nccl.ll128_base"];
    found.reckoned_base = costs["nccl.ll128_reckoned_base"];
    found.share = share_of_ll128(costs, tree, nodes);
    found.later = of_algorithm("nccl.ll128_ring_start", "nccl.ll128_tree_start") - costs["step.start"] - links;
    found.later_between += of_algorithm("nccl.ll128_ring_network", "nccl.ll128_tree_network");
  } else if (trial.protocol == "LL") {
    found.share = share_of_ll(costs, trial, tree, nodes);
    found.most = rate_of(node, nodes == 1   ? "nccl.ll_rate"
                               : nodes == 2 ? "nccl.ll_rate_of_two"
                                            : "nccl.ll_rate_of_more");
  } else {
    throw Error(ErrorKind::invalid_input, "'protocol' must be Simple, LL or LL128, not '" + trial.protocol + "'");
  }
  if (nodes == 1)
    found.most = std::min({found.most, rate_of(node, "nccl.node_rate"), nccl_nvlink_rate(node) * found.share});
  return found;
}

}  // namespace

NcclProtocol nccl_protocol(const std::vector<const NodeModel*>& types, const CollectiveTrial& trial, int nodes) {
  NcclProtocol slowest = protocol_of(*types.front(), trial, nodes);
  for (const NodeModel* type : types) {
    const NcclProtocol own = protocol_of(*type, trial, nodes);
    slowest = {std::min(slowest.share, own.share), std::min(slowest.most, own.most),
               std::max(slowest.later, own.later), std::max(slowest.later_between, own.later_between),
               std::max(slowest.base, own.base),   std::max(slowest.reckoned_base, own.reckoned_base)};
  }
  return slowest;
}

std::optional<std::string> why_not_protocol(const RankRoutes& channel, const CollectiveTrial& trial, int nodes) {
  if (trial.protocol != "LL128") return std::nullopt;
  const int of_node = channel.ranks_of_node();
  std::set<const NodeModel*> types;
  for (int rank = 0; rank < nodes * of_node; ++rank) {
    const NodeModel& node = channel.model_of(rank);
    const int first = rank - rank % of_node;
    if (rank == first && !types.insert(&node).second) {
      rank += of_node - 1;
      continue;
    }
    const std::string &own = channel.device(rank), &next = channel.device(first + (rank + 1) % of_node);
    if (own != next && node.distance(own, next) != 0) return "LL128 needs NVLinks: none from " + own + " to " + next;
    if (nodes > 1 && node.distance(own, channel.nic(rank)) > distance("PXB"))
      return "LL128 needs a NIC at the PCIe switch of each GPU: none at that of " + own;
  }
  return std::nullopt;
}

}  // namespace waywiser::sim
