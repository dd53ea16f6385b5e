#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// A copy kernel: at the source it stores into the destination (push), at the destination it loads from the source
// (pull). Parameters: direction=push|pull, blocks=1..65535, threads=32..1024 (512 when left out), handle=cuda_ipc|
// descriptor between two processes.
Mechanism sm_copy_mechanism();

}  // namespace waywiser
