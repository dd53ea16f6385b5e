#include "waywiser/measure/path_limit.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/topology/graph.hpp"
#include "waywiser/topology/route.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

Limit of_route(const Graph& graph, const std::string& a, const std::string& b, Links links) {
  const Route way = route(graph, a, b, links);
  return way.limit ? Limit{*way.limit, way.limit_source} : Limit{};
}

// Unknown counts as unlimited.
Limit slower(const Limit& a, const Limit& b) {
  if (a.rate <= 0) return b;
  return b.rate > 0 && b.rate < a.rate ? b : a;
}

std::string host_beside(const Topology& topology, const std::string& gpu) {
  const Device* device = topology.find(gpu);
  const std::string node = "host" + std::to_string(device == nullptr || device->numa < 0 ? 0 : device->numa);
  return topology.find(node) == nullptr ? "host0" : node;
}

Limit find_limit(const Topology& topology, const Path& path) {
  const Graph graph(topology);
  const std::string from = text(path.source), to = text(path.destination);
  const bool between_gpus = path.source.is_gpu() && path.destination.is_gpu();
  if (path.has("via")) {
    const std::string via(path.parameter("via"));
    return slower(of_route(graph, from, via, Links::all), of_route(graph, via, to, Links::all));
  }
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  if (mechanism != nullptr && mechanism->through_host && between_gpus)
    return slower(of_route(graph, from, host_beside(topology, from), Links::no_gpu_fabric),
                  of_route(graph, host_beside(topology, to), to, Links::no_gpu_fabric));
  return of_route(graph, from, to, Links::all);
}

}  // namespace

Limit path_limit(const Topology& topology, const Path& path) {
  if (path.source == path.destination || (!path.source.is_gpu() && !path.destination.is_gpu())) return {};
  if (path.mechanism == "split") return {};
  try {
    return find_limit(topology, path);
  } catch (const Error&) {
    return {};  // nothing in the topology connects the two
  }
}

}  // namespace waywiser
