#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/kernels/copy_body.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {
namespace {

__global__ void __launch_bounds__(1024) copy_kernel(std::byte* destination, const std::byte* source, Bytes bytes) {
  copy_body(ThreadContext{blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, destination, source, bytes);
}

}  // namespace

CudaLauncher cuda_copy_launcher(std::byte* destination, const std::byte* source, Bytes bytes, unsigned blocks,
                                unsigned threads) {
  return [=](void* stream) {
    copy_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(destination, source, bytes);
    check_cuda(cudaGetLastError(), "launch of the copy kernel");
  };
}

}  // namespace waywiser
