#pragma once

#include "waywiser/topology/graph.hpp"
#include "waywiser/topology/route.hpp"
#include "waywiser/transport/step.hpp"

namespace waywiser {

// A step with the devices of this machine that it names.
struct RoutedStep {
  PathStep step;
  std::string from, to;  // devices: "gpu0", "host1"; empty if bytes do not move, or come from or go to a network card
  std::optional<Route> route;  // nothing: within one memory, from or to another machine, or nothing connects the two
};

// What happens to `bytes` bytes on a path's way, in order. Throws invalid_input for an unknown mechanism or parameter.
std::vector<RoutedStep> routed_steps(const Graph& graph, const Path& path, Bytes bytes);

// [{who, what, from, to, over: [device], limit, times}]: `from` and `to` in words, or null; `over` the devices of the
// route; `limit` of its slowest hop in bytes per second, or null; `times` how often, with the pieces of the path.
Json steps_json(const Topology& topology, const Path& path, Bytes bytes);

}  // namespace waywiser
