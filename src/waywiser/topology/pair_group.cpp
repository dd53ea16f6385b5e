#include "waywiser/topology/pair_group.hpp"

#include <map>

#include "waywiser/topology/relation.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

std::string rate_text(const std::optional<BytesPerSecond>& rate) { return rate ? std::to_string(*rate) : "?"; }

std::string kinds_and_relation(const Graph& graph, const Device& a, const Device& b) {
  const std::string word = a.id == b.id ? "same" : relation(graph, a.id, b.id);
  return a.kind + ">" + b.kind + " " + word;
}

std::string signature(const Graph& graph, const Device& a, const Device& b) {
  const Topology& topology = graph.topology();
  std::string text = kinds_and_relation(graph, a, b) + "|" + a.name + "|" + b.name;
  if (a.kind == "gpu" && b.kind == "gpu") text += why_no_peer_access(topology, a.id, b.id) ? "|no peer" : "|peer";
  if (a.id == b.id) return text + "|" + rate_text(route(graph, a.id, b.id).limit);
  // Both ways count: staging through the host differs where NVLink is alike.
  for (const Links links : {Links::gpu_fabric, Links::no_gpu_fabric})
    for (const Hop& hop : graph.walk(a.id, b.id, links))
      text += "|" + hop.link.kind + " " + std::to_string(hop.link.count) + " " + rate_text(hop.link.nominal);
  return text;
}

}  // namespace

std::vector<PairGroup> pair_groups(const Topology& topology, SamePlace same) {
  const Graph graph(topology);
  std::vector<PairGroup> groups;
  std::map<std::string, std::size_t> by_signature;
  std::map<std::string, int> times;
  const std::vector<std::string> all = places(topology);
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      if (a == b && same == SamePlace::left_out) continue;
      const Device& from = topology.at(a);
      const Device& to = topology.at(b);
      const auto [entry, fresh] = by_signature.emplace(signature(graph, from, to), groups.size());
      if (fresh) {
        const std::string name = kinds_and_relation(graph, from, to);
        const int number = ++times[name];
        groups.push_back({number == 1 ? name : name + " #" + std::to_string(number), {}});
      }
      groups[entry->second].members.emplace_back(a, b);
    }
  }
  return groups;
}

}  // namespace waywiser
