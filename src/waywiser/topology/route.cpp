#include "waywiser/topology/route.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/relation.hpp"

namespace waywiser {
namespace {

std::string words(const Link& link) {
  std::string text = link.kind;
  if (link.kind == "pcie" && link.generation > 0)
    text = "PCIe " + std::to_string(link.generation) + " x" + std::to_string(link.width);
  if (link.kind == "nvlink") text = std::to_string(link.count) + " x NVLink " + std::to_string(link.generation);
  return text;
}

void take_slowest(Route& route) {
  for (const Hop& hop : route.hops) {
    if (hop.link.nominal && (!route.limit || *hop.link.nominal < *route.limit)) {
      route.limit = hop.link.nominal;
      route.limit_source = words(hop.link) + " " + hop.from + " - " + hop.to + ": " + hop.link.source;
    }
    if (hop.link.achievable && (!route.achievable || *hop.link.achievable < *route.achievable))
      route.achievable = hop.link.achievable;
  }
  if (!route.limit) route.limit_source = "no hop has a known rate";
}

std::optional<BytesPerSecond> memory_bandwidth(const Topology& topology, const Device& device) {
  for (const Link& link : topology.links)
    if (link.kind == "memory" && (link.a == device.id || link.b == device.id)) return link.nominal;
  const auto found = device.attributes.find("memory_bandwidth");
  if (found == device.attributes.end()) return std::nullopt;
  double value = 0;
  const std::string& text = found->second;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool fits = problem == std::errc{} && *rest == '\0' && std::isfinite(value) && value > 0;
  return fits ? std::optional(value) : std::nullopt;
}

Route within(const Topology& topology, const Device& device) {
  Route route;
  const auto bandwidth = memory_bandwidth(topology, device);
  route.limit_source = "the bandwidth of the memory is not known";
  if (!bandwidth) return route;
  route.limit = *bandwidth / 2;
  route.limit_source = "half of the memory's " + format_rate(*bandwidth) + ": a copy reads and writes it";
  return route;
}

}  // namespace

Route route(const Graph& graph, std::string_view a, std::string_view b, Links links) {
  const Device& from = graph.topology().at(a);
  graph.topology().at(b);
  if (a == b) return within(graph.topology(), from);
  Route found;
  if (links != Links::no_gpu_fabric) found.hops = graph.walk(a, b, Links::gpu_fabric);
  if (found.hops.empty() && links != Links::gpu_fabric) found.hops = graph.walk(a, b, Links::no_gpu_fabric);
  if (found.hops.empty())
    throw Error(ErrorKind::invalid_input, "nothing connects " + std::string(a) + " and " + std::string(b) +
                                              " in machine " + graph.topology().name);
  take_slowest(found);
  return found;
}

Route route(const Topology& topology, std::string_view a, std::string_view b, Links links) {
  return route(Graph(topology), a, b, links);
}

std::optional<std::string> why_no_peer_access(const Topology& topology, std::string_view a, std::string_view b) {
  const Device& from = topology.at(a);
  const Device& to = topology.at(b);
  const std::string pair = from.id + " and " + to.id;
  if (from.kind != "gpu" || to.kind != "gpu") return "no peer access between " + pair + ": not two GPUs";
  if (a == b) return std::nullopt;
  if (const auto recorded = from.attributes.find("peer:" + to.id); recorded != from.attributes.end())
    return recorded->second == "ok" ? std::nullopt
                                    : std::optional("no peer access between " + pair + ": " + recorded->second);
  if (distance(relation(topology, a, b)) <= distance("PHB")) return std::nullopt;
  return "no peer access between " + pair + ": different root complexes";
}

bool has_rdma(const Topology& topology, std::string_view nic) {
  const Device& card = topology.at(nic);
  if (card.attributes.contains("rdma")) return true;
  if (const auto interface = card.attributes.find("interface"); interface != card.attributes.end())
    if (interface->second == card.name) return false;
  return std::ranges::none_of(topology.links, [&](const Link& link) {
    if (link.kind != "network" || (link.a != nic && link.b != nic)) return false;
    return topology.at(link.a == nic ? link.b : link.a).name == "Ethernet";
  });
}

}  // namespace waywiser
