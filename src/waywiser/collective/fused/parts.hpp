#pragma once

#include <span>

#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser::fused {

// Enqueues the sum of equally long parts, in their order: of a GPU's own memory or of memory that it reaches.
void add_up(Stream& stream, LaunchCache* cache, std::span<const ConstRegion> parts, Region result, DataType type,
            ReduceOp op);

}  // namespace waywiser::fused
