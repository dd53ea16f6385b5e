#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/heap/device/cuda_heap_block.cuh"
#include "waywiser/heap/proxy/delivery.hpp"

namespace waywiser::one_sided {
namespace {

constexpr unsigned threads = 256;

__global__ void __launch_bounds__(threads) delivery_kernel(const __grid_constant__ Delivery delivery) {
  CudaHeapBlock gpu;
  deliver(gpu, delivery);
}

}  // namespace

std::function<void(void*)> cuda_launcher(const Delivery& delivery) {
  return [=](void* stream) {
    launch_kernel(nullptr, delivery_kernel, 1, threads, false, stream, "launch of accesses by a proxy", delivery);
  };
}

}  // namespace waywiser::one_sided
