#include "waywiser/collective/on_stream/gate_kernel.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::on_stream {
namespace {

__global__ void __launch_bounds__(1) gate_kernel(const __grid_constant__ GateArguments gate) {
  block::CudaBlock block;
  wait_at_gate(block, gate);
}

}  // namespace

// Without overlapping launches: later work begins only when the gate kernel has ended.
std::function<void(void*)> cuda_gate_launcher(const GateArguments& gate) {
  return [gate](void* stream) {
    gate_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(gate);
    check_cuda(cudaGetLastError(), "launch of the kernel that waits for the host");
  };
}

}  // namespace waywiser::on_stream
