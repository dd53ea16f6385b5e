#pragma once

#include <compare>
#include <set>
#include <string>

#include "waywiser/base/json.hpp"

namespace waywiser::sim {

// A number that is not known for a part, and what stands for it.
struct Assumption {
  std::string part;       // "Intel Xeon Platinum 8380"
  std::string parameter;  // "cpu.p2p_read"
  std::string what;       // "GPUDirect read limit"
  std::string assumed;    // "the PCIe link's"
  auto operator<=>(const Assumption&) const = default;
};
using Assumptions = std::set<Assumption>;

inline Json to_json(const Assumptions& assumptions) {
  Json all = Json::array();
  for (const Assumption& one : assumptions)
    all.push_back({{"part", one.part}, {"parameter", one.parameter}, {"what", one.what}, {"assumed", one.assumed}});
  return all;
}

}  // namespace waywiser::sim
