#pragma once

#include <memory>

namespace waywiser {

// UCX works on GPU memory with the calling thread's current device. -1: there is no such GPU in this build.
int cuda_ordinal_of(int gpu_index);
// Makes the device current until the result is released.
std::shared_ptr<void> make_gpu_current(int cuda_ordinal);

}  // namespace waywiser
