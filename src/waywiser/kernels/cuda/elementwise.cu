#include "waywiser/device/cuda/check.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"
#include "waywiser/kernels/elementwise_body.hpp"

namespace waywiser {
namespace {

template <typename T>
__global__ void elementwise_kernel(Elementwise operation, ElementwiseArrays arrays) {
  elementwise_body<T>(ThreadContext{blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, operation, arrays);
}

}  // namespace

CudaLauncher cuda_elementwise_launcher(const Elementwise& operation, const ElementwiseArrays& arrays, unsigned blocks,
                                       unsigned threads) {
  return [=](void* stream) {
    with_element_type(operation.type, [&](auto zero) {
      elementwise_kernel<decltype(zero)><<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(operation, arrays);
    });
    check_cuda(cudaGetLastError(), "launch of an element-wise kernel");
  };
}

}  // namespace waywiser
