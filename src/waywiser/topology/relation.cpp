#include "waywiser/topology/relation.hpp"

#include <algorithm>

namespace waywiser {
namespace {

std::string between_host_bridges(const Device& a, const Device& b) {
  return a.numa >= 0 && a.numa == b.numa ? "NODE" : "SYS";
}

// The NUMA node of a memory or a CPU against the one of a device.
std::string to_memory(const Device& host, const Device& other, const std::vector<Hop>& hops) {
  if (other.kind == "host") {
    const bool one_package = hops.size() == 2;
    return one_package ? "NODE" : "SYS";
  }
  const bool another_package = std::ranges::any_of(hops, [](const Hop& hop) { return hop.link.kind == "socket"; });
  if (another_package) return "SYS";
  return other.numa < 0 || host.numa == other.numa ? "PHB" : "NODE";
}

std::string along_pcie(const Topology& topology, const std::vector<Hop>& hops) {
  int bridges = 0;
  int roots = 0;
  for (const Hop& hop : hops) {
    const Device& device = topology.at(hop.to);
    bridges += device.kind == "switch" || device.kind == "bridge";
    roots += device.kind == "root";
    if (device.kind == "cpu") return "SYS";  // replaced by the caller when both are of one node
  }
  return roots > 0 ? "PHB" : bridges > 1 ? "PXB" : "PIX";
}

}  // namespace

std::string relation(const Graph& graph, std::string_view a, std::string_view b) {
  const Topology& topology = graph.topology();
  const Device& from = topology.at(a);
  const Device& to = topology.at(b);
  if (a == b) return "X";
  if (const GpuLinks links = graph.gpu_links(a, b); links.count > 0)
    return (links.kind == "xgmi" ? "XGMI" : "NV") + std::to_string(links.count);
  const std::vector<Hop> hops = graph.walk(a, b);
  if (from.kind == "host") return to_memory(from, to, hops);
  if (to.kind == "host") return to_memory(to, from, hops);
  const std::string word = hops.empty() ? "SYS" : along_pcie(topology, hops);
  return word == "SYS" ? between_host_bridges(from, to) : word;
}

std::string relation(const Topology& topology, std::string_view a, std::string_view b) {
  return relation(Graph(topology), a, b);
}

int distance(std::string_view relation) {
  constexpr std::string_view order[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
  const auto found = std::ranges::find(order, relation);
  return found == std::end(order) ? 0 : static_cast<int>(found - std::begin(order)) + 1;
}

Matrix matrix(const Topology& topology) {
  const Graph graph(topology);
  Matrix result{topology.ids("gpu"), {}};
  for (const std::string& nic : topology.ids("nic")) result.ids.push_back(nic);
  for (const std::string& row : result.ids) {
    std::vector<std::string>& words = result.words.emplace_back();
    for (const std::string& column : result.ids) words.push_back(relation(graph, row, column));
  }
  return result;
}

}  // namespace waywiser
