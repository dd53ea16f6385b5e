#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// Copies with the threads of `stream`'s GPU, which must reach both regions; any alignment, any size. Fastest if both
// addresses have the same remainder modulo 16. A host stream copies at once and ignores blocks and threads. Throws
// invalid_input like check_put, or if blocks or threads (at most 1024) are out of range. `cache`: the caller's, or
// nullptr.
void launch_copy(Stream& stream, Region destination, ConstRegion source, unsigned blocks, unsigned threads,
                 LaunchCache* cache = nullptr);

}  // namespace waywiser
