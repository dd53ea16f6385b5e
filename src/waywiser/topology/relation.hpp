#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waywiser/topology/graph.hpp"

namespace waywiser {

// How two devices are connected, in the words of `nvidia-smi topo -m`:
//   X    the same device           NV#  # NVLinks, direct or through NVSwitches
//   PIX  at most one PCIe bridge   PXB  several bridges, no host bridge
//   PHB  through a host bridge     NODE between host bridges of one NUMA node
//   SYS  between NUMA nodes
// A NUMA node's memory counts as being at the host bridge of its node.
std::string relation(const Graph& graph, std::string_view a, std::string_view b);
std::string relation(const Topology& topology, std::string_view a, std::string_view b);

// 0 for X and NV#, then 1 for PIX up to 5 for SYS: smaller is closer.
int distance(std::string_view relation);

struct Matrix {
  std::vector<std::string> ids;                 // GPUs, then NICs
  std::vector<std::vector<std::string>> words;  // words[i][j] = relation(ids[i], ids[j])
};
Matrix matrix(const Topology& topology);

}  // namespace waywiser
