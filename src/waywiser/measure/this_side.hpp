#pragma once

#include "waywiser/device/platform.hpp"
#include "waywiser/topology/network_side.hpp"

namespace waywiser {

// This machine as one end of a network. The topology is discovered unless it is given.
NetworkSide this_side(const Platform& platform);
NetworkSide this_side(const Platform& platform, const Topology& topology);

}  // namespace waywiser
