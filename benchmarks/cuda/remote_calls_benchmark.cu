#include <cuda_runtime.h>

#include "benchmarks/cuda/local_kernel.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

__global__ void axpy(float* y, const float* x, float a, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] += a * x[i];
}

}  // namespace

void launch_axpy(void* cuda_stream, float* y, const float* x, float a, int n) {
  axpy<<<1, 64, 0, static_cast<cudaStream_t>(cuda_stream)>>>(y, x, a, n);
  check_cuda(cudaGetLastError(), "axpy");
}

}  // namespace waywiser
