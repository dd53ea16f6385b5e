#pragma once

#include <memory>

namespace waywiser {

// UCX and cuFile access GPU memory through the calling thread's current device. -1: this build has no such GPU.
int cuda_ordinal_of(int gpu_index);
// Makes the device current until the result is destroyed.
std::shared_ptr<void> make_gpu_current(int cuda_ordinal);

}  // namespace waywiser
