#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Through a buffer in host memory, without peer access. Parameters: variant=pageable (ordinary memory) | whole (pinned)
// | pipelined (pinned, in chunks); chunk=4K..1G and depth=1..64 for pipelined; handle between two processes.
Mechanism host_staged_mechanism();

}  // namespace waywiser
