#pragma once

#include <string>

#include "tests/sim/package_machines.hpp"
#include "waywiser/sim/collective_run.hpp"

// Collectives on machines of the package.
namespace waywiser::sim {

inline NodeModel node_of(const std::string& name) {
  const Topology machine = package_machine(name);
  return {machine, costs_of(machine)};
}

inline ClusterSpec cluster(int nodes, const std::string& kind = "fat-tree") {
  ClusterSpec spec;
  spec.network.nodes = nodes;
  spec.network.kind = kind;
  return spec;
}

inline CollectiveTrial all_reduce(const std::string& algorithm, Bytes bytes) {
  CollectiveTrial trial;
  trial.algorithm = algorithm;
  trial.bytes = bytes;
  return trial;
}

}  // namespace waywiser::sim
