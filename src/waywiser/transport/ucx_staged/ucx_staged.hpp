#pragma once

#include "waywiser/transport/transport.hpp"
#include "waywiser/transport/ucx_staged/staging_ring.hpp"

namespace waywiser {

// Between GPU memory and a memory of the machine at the other end of the network, through host memory at each GPU's
// end: UCX sees host memory only. Parameters: variant=pageable | whole (pinned) | pipelined (pinned, in chunks);
// chunk=4K..1G and depth=1..64 for pipelined; transports, device and share as of ucx.
Mechanism ucx_staged_mechanism();

// What the parameters say about the passage through host memory. Throws invalid_input.
StagingShape staging_shape(const Path& path);

}  // namespace waywiser
