#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/kernels/copy_body.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {
namespace {

__global__ void __launch_bounds__(1024) copy_kernel(std::byte* destination, const std::byte* source, Bytes bytes) {
  copy_body(ThreadContext{blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, destination, source, bytes);
}

}  // namespace

CudaLauncher cuda_copy_launcher(LaunchCache* cache, std::byte* destination, const std::byte* source, Bytes bytes,
                                unsigned blocks, unsigned threads) {
  return [=](void* stream) {
    launch_kernel(cache, copy_kernel, blocks, threads, false, stream, "launch of the copy kernel", destination, source,
                  bytes);
  };
}

}  // namespace waywiser
