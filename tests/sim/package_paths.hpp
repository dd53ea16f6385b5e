#pragma once

#include <string>
#include <vector>

#include "tests/sim/package_machines.hpp"
#include "waywiser/measure/other_machine.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/sim/simulated_meter.hpp"

namespace waywiser::sim {

struct Asked {
  Path path;
  int to_node = 0;
};

inline NetworkSide side_of(const Topology& topology) {
  NetworkSide side{topology.name, "1", static_cast<int>(topology.ids("gpu").size()), {}};
  for (const std::string& nic : topology.ids("nic")) {
    const std::string& name = topology.at(nic).name;
    side.devices.push_back({name.starts_with("mlx") ? name + ":1" : name, name.starts_with("mlx"), {"one network"}});
  }
  return side;
}

// What enumeration gives for a machine: within it, and to a second one. The ends of each range of values are enough.
inline std::vector<Asked> all_paths(const Topology& topology) {
  std::vector<Asked> all;
  const auto add = [&](const Subject& subject, int node) {
    for (const Family& family : subject.families) {
      const std::vector<Path> paths = expand(family);
      for (const Path& path : {paths.front(), paths.back()}) all.push_back({path, node});
    }
  };
  for (const Subject& subject : simulated_subjects(topology, {})) add(subject, 0);
  const NetworkSide side = side_of(topology);
  for (const Subject& subject : network_subjects(side, side, {})) add(subject, 1);
  return all;
}

}  // namespace waywiser::sim
