#pragma once

#include <optional>

#include "waywiser/base/json.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// The number of NVLinks that a measured one-way rate implies, and the number in the topology.
struct NvlinkCount {
  int stated = 0;
  int inferred = 0;
  bool mismatch = false;  // they differ by more than one link, or by more than 25 %
};

// Empty if the topology has no NVLink between the two, or no rate of a link.
std::optional<NvlinkCount> count_nvlinks(const Topology& topology, int source, int destination, BytesPerSecond rate);

// The report over all GPUs: matrices from source (row) to destination (column) of peer access, rates in GB/s one way
// and both ways, latencies in microseconds as seen by GPU events and by the host's clock, each with peer access off and
// on; null if there is none. Bytes are verified before a pair is timed. `bytes` of each copy for rates. Leaves peer
// access on. Times of virtual GPUs are marked "simulated".
Json peer_report(Platform& platform, const Topology& topology, Bytes bytes, const ProgressCallback& progress);

}  // namespace waywiser
