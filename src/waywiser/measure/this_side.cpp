#include "waywiser/measure/this_side.hpp"

#include "waywiser/topology/discover.hpp"

namespace waywiser {

NetworkSide this_side(const Platform& platform) { return this_side(platform, discover()); }

NetworkSide this_side(const Platform& platform, const Topology& topology) {
  return {topology.name, fingerprint(topology), platform.gpu_count(), network_devices(SystemFiles(""))};
}

}  // namespace waywiser
