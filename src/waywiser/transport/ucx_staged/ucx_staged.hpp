#pragma once

#include "waywiser/transport/transport.hpp"
#include "waywiser/transport/ucx_staged/staging_ring.hpp"

namespace waywiser {

// Between GPU memory and a memory of the machine at the other end of the network, staged through host memory at each
// end with a GPU: UCX sees only host memory. Parameters: variant=pageable | whole (pinned) | pipelined (pinned, in
// chunks); chunk=4K..1G and depth=1..64 for pipelined; transports, device and share as for ucx.
Mechanism ucx_staged_mechanism();

// The staging that the parameters describe. Throws invalid_input.
StagingShape staging_shape(const Path& path);

}  // namespace waywiser
