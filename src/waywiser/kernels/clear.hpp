#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// Writes zeros to memory of the stream's GPU, which does it by itself; complete on return.
void clear(Stream& stream, Region region);

}  // namespace waywiser
