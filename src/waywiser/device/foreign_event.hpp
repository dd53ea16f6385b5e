#pragma once

#include "waywiser/base/timeout.hpp"

namespace waywiser {

// Waits for an event of CUDA that another library has recorded. `event`: the address of its cudaEvent_t. Throws
// timeout, or device with the error of the work; unavailable in a build without CUDA.
void await_foreign_event(const void* event, Deadline deadline);

}  // namespace waywiser
