#include "waywiser/measure/path_limit.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/measure/path_steps.hpp"

namespace waywiser {

Limit path_limit(const Topology& topology, const Path& path) {
  if (path.source == path.destination || (!path.source.is_gpu() && !path.destination.is_gpu())) return {};
  if (path.source.other_machine() != path.destination.other_machine() || path.mechanism == "split") return {};
  Limit slowest;
  const Graph graph(topology);
  for (const RoutedStep& step : routed_steps(graph, path, 1))
    if (step.route && step.route->limit && (slowest.rate <= 0 || *step.route->limit < slowest.rate))
      slowest = {*step.route->limit, step.route->limit_source};
  return slowest;
}

}  // namespace waywiser
