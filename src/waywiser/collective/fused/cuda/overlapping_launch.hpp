#pragma once

#include <cuda_runtime.h>

#include "waywiser/device/cuda/check.hpp"

namespace waywiser::fused {

// The end of the kernel before on `stream` (a cudaStream_t) and the begin of this one may overlap (programmatic
// dependent launch); the kernel itself waits where it must. `what` is for the error.
template <typename Kernel, typename... Arguments>
void launch_overlapping(Kernel kernel, unsigned blocks, unsigned threads, void* stream, const char* what,
                        const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(stream);
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &overlap;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

}  // namespace waywiser::fused
