#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// One link, walked in one direction.
struct Hop {
  std::string from;
  std::string to;
  Link link;
};

// The GPU fabric: NVLinks and xGMI links between GPUs and NVSwitches. An NVLink to a CPU leads to host memory and is
// not part of it.
enum class Links { all, gpu_fabric, no_gpu_fabric };

struct GpuLinks {
  std::string kind;  // "nvlink" or "xgmi"
  int count = 0;
};

// Answers questions about neighbouring devices; keeps a reference, so the topology must outlive it.
class Graph {
 public:
  explicit Graph(const Topology& topology);

  // The fewest links from a to b; only cpu, root, switch, bridge and nvswitch lie between. Empty if a is b or there is
  // no such path.
  std::vector<Hop> walk(std::string_view a, std::string_view b, Links links = Links::all) const;
  // Links that a can use towards b, directly or through NVSwitches; 0 when there is none.
  GpuLinks gpu_links(std::string_view a, std::string_view b) const;
  // False if the links between two GPUs are unknown: then the absence of links means nothing.
  bool gpu_links_known(std::string_view a, std::string_view b) const;

  const Topology& topology() const noexcept { return *topology_; }

 private:
  std::size_t index(std::string_view id) const;
  bool walkable(const Link& link, Links links) const;
  struct Edge {
    std::size_t to;
    std::size_t link;
  };
  const Topology* topology_;
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace waywiser
