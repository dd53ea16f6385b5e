#include "waywiser/topology/virtual_machine.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/route.hpp"

namespace waywiser {
namespace {

int count(const Topology& topology, const std::string& kind) {
  const std::vector<std::string> ids = topology.ids(kind);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (std::ranges::find(ids, kind + std::to_string(i)) == ids.end())
      throw Error(ErrorKind::invalid_input, "machine " + topology.name + ": " + kind + std::to_string(i) +
                                                " is missing among its " + std::to_string(ids.size()) +
                                                " devices of this kind");
  return static_cast<int>(ids.size());
}

// The caller names the pair: "no peer access between gpu0 and gpu6: why" -> "no peer access: why".
std::string without_pair(const std::string& reason) {
  const std::size_t colon = reason.find(": ");
  return colon == std::string::npos ? reason : "no peer access" + reason.substr(colon);
}

}  // namespace

VirtualMachine virtual_machine(const Topology& topology) {
  VirtualMachine machine;
  machine.gpus = count(topology, "gpu");
  machine.host_nodes = std::max(1, count(topology, "host"));
  for (int gpu = 0; gpu < machine.gpus; ++gpu) {
    const int numa = topology.at("gpu" + std::to_string(gpu)).numa;
    machine.host_of_gpu.push_back(numa >= 0 && numa < machine.host_nodes ? numa : 0);
    std::vector<std::string>& row = machine.no_peer_access.emplace_back();
    for (int peer = 0; peer < machine.gpus; ++peer) {
      const auto why = why_no_peer_access(topology, "gpu" + std::to_string(gpu), "gpu" + std::to_string(peer));
      row.push_back(why ? without_pair(*why) : "");
    }
  }
  return machine;
}

}  // namespace waywiser
