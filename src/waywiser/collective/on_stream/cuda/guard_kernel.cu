#include "waywiser/collective/on_stream/guard.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser::on_stream {
namespace {

// Few blocks: each reads the words, and the fill need not be fast.
constexpr unsigned blocks = 8, threads = 512;

__global__ void __launch_bounds__(threads) guard_kernel(const __grid_constant__ GuardArguments guard) {
  __shared__ bool failed;
  if (threadIdx.x == 0) {
    failed = *static_cast<const volatile std::uint32_t*>(guard.failed) != 0;
    if (!failed && guard.told != nullptr) failed = *static_cast<const volatile std::uint32_t*>(guard.told) != 0;
    if (failed) *static_cast<volatile std::uint32_t*>(guard.failed) = 1;
  }
  __syncthreads();
  if (!failed) return;
  const std::uint64_t first = blockIdx.x * threads + threadIdx.x, step = std::uint64_t{gridDim.x} * threads;
  const std::uint64_t misaligned = reinterpret_cast<std::uintptr_t>(guard.data) % sizeof(uint4);
  const std::uint64_t before = misaligned == 0 ? 0 : sizeof(uint4) - misaligned;
  const std::uint64_t edge = before < guard.bytes ? before : guard.bytes;
  const std::uint64_t words = (guard.bytes - edge) / sizeof(uint4), rest = edge + words * sizeof(uint4);
  auto* const middle = reinterpret_cast<uint4*>(guard.data + edge);
  for (std::uint64_t i = first; i < edge; i += step) guard.data[i] = std::byte{0xff};
  for (std::uint64_t i = first; i < words; i += step) middle[i] = uint4{~0u, ~0u, ~0u, ~0u};
  for (std::uint64_t i = rest + first; i < guard.bytes; i += step) guard.data[i] = std::byte{0xff};
}

}  // namespace

std::function<void(void*)> cuda_guard_launcher(const GuardArguments& guard) {
  return [guard](void* stream) {
    guard_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(guard);
    check_cuda(cudaGetLastError(), "launch of the kernel that guards an output");
  };
}

}  // namespace waywiser::on_stream
