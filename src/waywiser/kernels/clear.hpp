#pragma once

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Writes zeros to memory of the stream's GPU; complete on return.
void clear(Platform& platform, Stream& stream, Region region);

}  // namespace waywiser
