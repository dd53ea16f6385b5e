#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// A test pattern: byte i is a hash of (seed, i), so that constant, shifted or stale data do not match. On a GPU stream
// the GPU does the work and must reach the region; on a host stream the calling thread does.
void fill_pattern(Stream& stream, Region region, std::uint64_t seed);

// The number of bytes that differ from the pattern, after all earlier work. Synchronises; throws timeout or device.
Bytes count_mismatches(Stream& stream, ConstRegion region, std::uint64_t seed, Deadline deadline);

}  // namespace waywiser
