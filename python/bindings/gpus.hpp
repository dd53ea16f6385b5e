#pragma once

#include <memory>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// The GPUs that a Python program uses: CUDA's or virtual ones.
struct Gpus {
  std::shared_ptr<Platform> platform;
};

// Memory of one of them; what keeps an array alive.
struct GpuMemory {
  std::shared_ptr<Platform> platform;
  Memory memory;
};

// A stream of one of them.
struct GpuStream {
  std::shared_ptr<Platform> platform;
  std::unique_ptr<Stream> stream;
};

}  // namespace waywiser
