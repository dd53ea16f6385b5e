#include "waywiser/sim/nccl_choice.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_protocols.hpp"

namespace waywiser::sim {
namespace {

// Of all machines of the model; the trial says which of them its machine has.
std::vector<std::pair<std::string, std::string>> candidates() {
  std::vector<std::pair<std::string, std::string>> all{
      {"nccl_nvls", "Simple"}, {"nccl_nvls_tree", "Simple"}, {"nccl_collnet", "Simple"}};
  for (const char* protocol : nccl_protocols)
    for (const char* algorithm : {"nccl_tree", "nccl_ring"}) all.emplace_back(algorithm, protocol);
  return all;
}

// No run takes less: the bus bandwidth of the protocol is at most `most`, and each rank of a ring sends one message
// after the other.
Seconds least_time(const std::vector<const NodeModel*>& types, const CollectiveTrial& trial, int ranks,
                   int ranks_of_node) {
  if (trial.algorithm != "nccl_ring" && trial.algorithm != "nccl_tree") return 0;
  const NcclProtocol protocol = nccl_protocol(types, trial, std::max(1, ranks / ranks_of_node));
  const double parts = (trial.operation == Collective::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
  const double messages = trial.algorithm == "nccl_ring" ? parts * ranks : 1;
  Seconds start = no_cap;
  for (const NodeModel* type : types) start = std::min(start, type->costs()["step.start"]);
  start = std::max(0.0, start + protocol.later);
  return std::max(parts * static_cast<double>(trial.bytes) / protocol.most, messages * start);
}

}  // namespace

Ran nccl_choice(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace) {
  const std::vector<std::string>& order = trial.groups.empty() ? trial.order : trial.groups.front();
  const auto gpus = order.empty() ? node.topology().ids("gpu").size() : order.size();
  const int of_node = std::max(1, static_cast<int>(gpus));
  const int places = cluster.places.empty() ? cluster.network.nodes : static_cast<int>(cluster.places.size());
  const int nodes = places - (trial.beside == nullptr ? 0 : trial.beside->nodes);
  const int ranks = trial.ranks > 0 ? trial.ranks : nodes * of_node;
  std::vector<const NodeModel*> types{&node};
  types.insert(types.end(), cluster.others.begin(), cluster.others.end());
  std::vector<NcclTried> tried;
  Ran best;
  Seconds least = no_cap;  // reckoned
  std::string why;
  for (const auto& [algorithm, protocol] : candidates()) {
    CollectiveTrial one = trial;
    std::tie(one.algorithm, one.protocol) = std::pair(algorithm, protocol);
    NcclTried told{algorithm, protocol, 0, 0, ""};
    try {
      if (least_time(types, one, ranks, of_node) > least)
        throw Error(ErrorKind::unavailable, "it cannot be faster than what was tried before");
      Ran ran = simulate(node, cluster, one);
      told.seconds = ran.seconds;
      told.reckoned = ran.seconds - ran.unreckoned;
      if (told.reckoned < least) {
        least = told.reckoned;
        best = std::move(ran);
        best.algorithm = algorithm;
        best.protocol = protocol;
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      told.why_not = why = error.what();
    }
    tried.push_back(std::move(told));
  }
  if (best.algorithm.empty()) throw Error(ErrorKind::unavailable, "nccl: " + why);
  if (trace != nullptr) {
    CollectiveTrial one = trial;
    std::tie(one.algorithm, one.protocol) = std::pair(best.algorithm, best.protocol);
    static_cast<void>(simulate(node, cluster, one, trace));
  }
  best.tried = std::move(tried);
  return best;
}

}  // namespace waywiser::sim
