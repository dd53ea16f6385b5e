#include "waywiser/measure/path_steps.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

std::string host_beside(const Topology& topology, const std::string& gpu) {
  const Device* device = topology.find(gpu);
  const std::string node = "host" + std::to_string(device == nullptr || device->numa < 0 ? 0 : device->numa);
  return topology.find(node) == nullptr ? "host0" : node;
}

// Another machine's devices are not in the topology.
std::string device_of(const Topology& topology, const StepEnd& spot) {
  if (!spot.beside) return text(spot.place);
  const std::string place = text(spot.place);
  return spot.place.other_machine() ? "host memory beside " + place : host_beside(topology, place);
}

std::optional<Route> route_of(const Graph& graph, const PathStep& step, const std::string& from,
                              const std::string& to) {
  if (!step.from || !step.to || from == to) return {};
  if (step.from->place.other_machine() || step.to->place.other_machine()) return {};
  const bool through_host = step.from->beside || step.to->beside;
  try {
    return route(graph, from, to, through_host ? Links::no_gpu_fabric : Links::all);
  } catch (const Error&) {
    return {};  // nothing in the topology connects the two
  }
}

Json in_words(const std::optional<StepEnd>& spot, const std::string& device) {
  if (!spot) return nullptr;
  return spot->what.empty() ? device : std::string(spot->what) + " in " + device;
}

}  // namespace

std::vector<RoutedStep> routed_steps(const Graph& graph, const Path& path, Bytes bytes) {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  if (mechanism == nullptr)
    throw Error(ErrorKind::invalid_input, "'" + path.mechanism + "' is not a mechanism: " + label(path));
  std::vector<RoutedStep> found;
  for (PathStep& step : mechanism->steps(path, bytes)) {
    const auto device = [&](const std::optional<StepEnd>& spot) {
      return spot ? device_of(graph.topology(), *spot) : std::string();
    };
    const std::string from = device(step.from), to = device(step.to);
    std::optional<Route> way = route_of(graph, step, from, to);
    found.push_back({std::move(step), from, to, std::move(way)});
  }
  return found;
}

Json steps_json(const Topology& topology, const Path& path, Bytes bytes) {
  Json list = Json::array();
  for (const RoutedStep& each : routed_steps(Graph(topology), path, bytes)) {
    Json over = Json::array();
    if (each.route) {
      for (const Hop& hop : each.route->hops) over.push_back(hop.from);
      if (!each.route->hops.empty()) over.push_back(each.route->hops.back().to);
    }
    const Bytes piece = each.step.piece;
    list.push_back({{"who", each.step.who},
                    {"what", each.step.what},
                    {"from", in_words(each.step.from, each.from)},
                    {"to", in_words(each.step.to, each.to)},
                    {"over", std::move(over)},
                    {"limit", each.route && each.route->limit ? Json(*each.route->limit) : Json(nullptr)},
                    {"times", piece == 0 || bytes == 0 ? 1 : (bytes + piece - 1) / piece}});
  }
  return list;
}

}  // namespace waywiser
