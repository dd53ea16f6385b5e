#pragma once

#include <string>

#include "waywiser/sim/costs.hpp"

// The machines and parts that come with the package.
namespace waywiser::sim {

inline Json package_parts() { return read_json(WAYWISER_SOURCE_DIR "/python/waywiser/simulator/parts.json"); }

inline Topology package_machine(const std::string& name) {
  return topology_from_json(read_json(WAYWISER_SOURCE_DIR "/python/waywiser/machines/" + name + ".json"), name);
}

inline Costs costs_of(const Topology& topology) { return costs_of(topology, package_parts(), "parts"); }

inline const std::vector<std::string> package_machines{
    "dgx-1v", "dgx-2", "dgx-a100", "hse-a", "hse-c", "hse-e", "lassen", "remote-a10", "remote-t4", "recorded-4xh200"};

}  // namespace waywiser::sim
