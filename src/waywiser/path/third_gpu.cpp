#include "waywiser/path/third_gpu.hpp"

#include <algorithm>
#include <tuple>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

struct RelayLeg {
  bool peers = false;
  BytesPerSecond rate = 0;
};

RelayLeg leg(const Graph& graph, Place from, Place to) {
  const bool peers = !why_no_peer_access(graph.topology(), text(from), text(to));
  const bool connected = peers || !graph.walk(text(from), text(to)).empty();
  if (!connected) return {};
  return {peers, route(graph, text(from), text(to)).limit.value_or(0)};
}

}  // namespace

std::vector<Place> third_gpus(const Graph& graph, Place source, Place destination) {
  std::vector<std::tuple<bool, BytesPerSecond, int>> found;  // ascending: best last
  for (const std::string& id : graph.topology().ids("gpu")) {
    const Place via = parse_place(id);
    if (via == source || via == destination) continue;
    const RelayLeg in = leg(graph, source, via);
    const RelayLeg out = leg(graph, via, destination);
    found.emplace_back(in.peers && out.peers, std::min(in.rate, out.rate), -via.index);
  }
  std::ranges::sort(found, std::greater<>());
  std::vector<Place> places;
  for (const auto& entry : found) places.push_back(gpu(-std::get<2>(entry)));
  return places;
}

bool own_nvlink(const Graph& graph, Place a, Place b) {
  return a != b && graph.walk(text(a), text(b), Links::gpu_fabric).size() == 1;
}

}  // namespace waywiser
