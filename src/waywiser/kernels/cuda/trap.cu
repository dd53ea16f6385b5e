#include "waywiser/device/cuda/check.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {
namespace {

__global__ void trap_kernel() { __trap(); }

}  // namespace

CudaLauncher cuda_trap_launcher() {
  return [](void* stream) {
    trap_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
    check_cuda(cudaGetLastError(), "launch of the kernel that traps");
  };
}

}  // namespace waywiser
