#pragma once

#include <optional>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Copies between two GPUs (or within one), by the copy engine, or by the driver's own way without peer access.
struct PeerTimes {
  std::optional<BytesPerSecond> one_way, both_ways;  // both_ways: the sum
  std::optional<Seconds> latency_gpu, latency_cpu;   // of a copy of 8 bytes
};

// Throws corrupt if bytes do not arrive, device if a copy is not possible without peer access.
PeerTimes time_peer_pair(Platform& platform, int source, int destination, Bytes bytes, bool peer_access);

}  // namespace waywiser
