// Calls of NVSHMEM from inside kernels, as `waywiser bench --from kernel` times them: nvshmem_kernels.py
// compiles it with NVSHMEM's device library. Every kernel makes `calls` calls; PE 0 puts into and gets from PE 1.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstddef>
#include <cstdint>

namespace {

// The part of a block, as a heap's kernel cuts it.
__device__ std::size_t part(std::size_t bytes, unsigned block) {
  return block == gridDim.x ? bytes : bytes / 16 * block / gridDim.x * 16;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(512)
    waywiser_put(char* there, const char* data, std::size_t bytes, std::uint64_t calls) {
  const std::size_t begin = part(bytes, blockIdx.x), count = part(bytes, blockIdx.x + 1) - begin;
  for (std::uint64_t i = 0; i < calls; ++i) {
    nvshmemx_putmem_block(there + begin, data + begin, count, 1);
    if (threadIdx.x == 0) nvshmem_quiet();
    __syncthreads();
  }
}

extern "C" __global__ void __launch_bounds__(512)
    waywiser_get(char* data, const char* there, std::size_t bytes, std::uint64_t calls) {
  const std::size_t begin = part(bytes, blockIdx.x), count = part(bytes, blockIdx.x + 1) - begin;
  for (std::uint64_t i = 0; i < calls; ++i) {
    nvshmemx_getmem_block(data + begin, there + begin, count, 1);
    if (threadIdx.x == 0) nvshmem_quiet();  // the next one must not find old values in a cache
    __syncthreads();
  }
}

// By one thread of PE 0 and of PE 1; numbers go on from kernel to kernel.
extern "C" __global__ void waywiser_signal(std::uint64_t* signal, std::uint64_t first, std::uint64_t calls) {
  const int rank = nvshmem_my_pe(), other = 1 - rank;
  if (threadIdx.x != 0) return;
  for (std::uint64_t number = first; number < first + calls; ++number) {
    if (rank == 0) nvshmemx_signal_op(signal, number, NVSHMEM_SIGNAL_SET, other);
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, number);
    if (rank == 1) nvshmemx_signal_op(signal, number, NVSHMEM_SIGNAL_SET, other);
  }
}

// By one block of PE 0 and of PE 1.
extern "C" __global__ void __launch_bounds__(512)
    waywiser_put_message(char* taken, const char* data, std::size_t bytes, std::uint64_t* signal, std::uint64_t first,
                         std::uint64_t calls) {
  const int rank = nvshmem_my_pe(), other = 1 - rank;
  const auto wait = [&](std::uint64_t number) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, number);
    __syncthreads();
  };
  for (std::uint64_t number = first; number < first + calls; ++number) {
    if (rank == 0) nvshmemx_putmem_signal_block(taken, data, bytes, signal, number, NVSHMEM_SIGNAL_SET, other);
    wait(number);
    if (rank == 1) nvshmemx_putmem_signal_block(taken, taken, bytes, signal, number, NVSHMEM_SIGNAL_SET, other);
  }
}

extern "C" __global__ void waywiser_atomics(std::uint64_t* word, std::uint64_t calls) {
  if (threadIdx.x != 0 || calls == 0) return;
  const std::uint64_t begin = nvshmem_uint64_atomic_fetch_add(word, 1, 1);
  // Each call adds 1, computed from what the one before has fetched: without need of it, nothing would be waited for.
  std::uint64_t seen = begin;
  for (std::uint64_t i = 1; i < calls; ++i) seen = nvshmem_uint64_atomic_fetch_add(word, seen - begin - i + 2, 1);
}

extern "C" __global__ void waywiser_barrier(std::uint64_t calls) {
  for (std::uint64_t i = 0; i < calls; ++i) nvshmemx_barrier_all_block();
}
