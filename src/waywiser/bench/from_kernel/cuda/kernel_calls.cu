#include <algorithm>

#include "waywiser/bench/from_kernel/kernel_calls.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/heap/device/cuda_heap_block.cuh"

namespace waywiser::one_sided {
namespace {

constexpr unsigned most_threads = 512;

__global__ void __launch_bounds__(most_threads) kernel_calls_kernel(const __grid_constant__ KernelCalls task) {
  __shared__ alignas(128) std::byte staging[46 << 10];
  CudaStagedBlock gpu(staging, sizeof staging);
  make_kernel_calls(gpu, task);
}
__global__ void word_calls_kernel(const __grid_constant__ KernelCalls task) {
  CudaHeapBlock gpu;
  make_kernel_calls(gpu, task);
}

// A thread for each 8 bytes of a message, in whole warps.
unsigned message_threads(KernelCalls::Kind kind, std::uint64_t bytes) {
  const std::uint64_t wanted = kind == KernelCalls::Kind::message ? (bytes / 8 + 31) / 32 * 32 : 32;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 32, most_threads));
}

}  // namespace

std::function<void(void*)> cuda_launcher(const KernelCalls& task) {
  return [=](void* stream) {
    const bool moves = task.kind == KernelCalls::Kind::put || task.kind == KernelCalls::Kind::get;
    const unsigned threads = moves ? most_threads : message_threads(task.kind, task.bytes);
    const bool has_data = moves || task.kind == KernelCalls::Kind::message;
    launch_kernel(nullptr, has_data ? kernel_calls_kernel : word_calls_kernel, moves ? kernel_blocks(task.bytes) : 1,
                  threads, false, stream, "launch of timed calls", task);
  };
}

}  // namespace waywiser::one_sided
