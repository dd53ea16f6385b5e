#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The copy engine of the source's GPU, or of the destination's when the source is host memory.
// Parameters: direction=push|pull between two GPUs (push when left out; pull: the destination's engine reads),
// handle=cuda_ipc|descriptor between two processes.
Mechanism copy_engine_mechanism();

}  // namespace waywiser
