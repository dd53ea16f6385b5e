#pragma once

#include <optional>
#include <string>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

// The rate of a link in one direction, and the source of the figure.
struct Rate {
  BytesPerSecond nominal;
  BytesPerSecond achievable;
  std::string source;
};

// PCIe generation 1 to 6: transfer rate x lanes x encoding; achievable from the share of payload in a packet.
std::optional<Rate> pcie_rate(int generation, int width);
// NVLink generation 1 to 5, `count` links side by side.
std::optional<Rate> nvlink_rate(int generation, int count);
// From what the link says about itself; nothing for kinds whose rate only a data sheet knows.
std::optional<Rate> rate_of(const Link& link);
// Sets the rates of links that have none and for which rate_of() knows one.
void fill_rates(Topology& topology);

}  // namespace waywiser
