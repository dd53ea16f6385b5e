#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// Ordered pairs of places that the topology says are alike: same kinds, relation, peer access and rate of every hop.
// Measuring the first tells about all.
struct PairGroup {
  std::string name;  // "gpu>gpu NV2", "gpu>host PHB"; a number follows when a name comes twice
  std::vector<std::pair<std::string, std::string>> members;
};

enum class SamePlace { left_out, included };

// Every ordered pair of places is in exactly one group; groups and members in the order of places().
std::vector<PairGroup> pair_groups(const Topology& topology, SamePlace same = SamePlace::left_out);

}  // namespace waywiser
