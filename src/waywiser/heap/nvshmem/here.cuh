#pragma once

// For waywiser/nvshmem.h: types and their names, and the heap and teams as code of either side sees them.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "waywiser/heap/nvshmem/nvshmem_host.hpp"

#if defined(__CUDACC__)
#include "waywiser/heap/device/cuda_heap_block.cuh"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/team.hpp"

// What assert() calls; without asserts no header declares it.
extern "C" __host__ __device__ void __assert_fail(const char*, const char*, unsigned, const char*) noexcept
    __attribute__((__noreturn__));

// A function of the host and of kernels, of kernels, and of the host.
#define WAYWISER_NVSHMEM_BOTH static inline __host__ __device__
#define WAYWISER_NVSHMEM_DEVICE static inline __device__
#else
#define WAYWISER_NVSHMEM_BOTH static inline
#endif
#define WAYWISER_NVSHMEM_HOST static inline

// X(NAME, TYPE) for each type of NVSHMEM: those of atomics and waits, of bits, and all.
#define WAYWISER_NVSHMEM_BIT_TYPES(X) \
  X(uint, unsigned int)               \
  X(ulong, unsigned long)             \
  X(ulonglong, unsigned long long)    \
  X(int32, std::int32_t) X(int64, std::int64_t) X(uint32, std::uint32_t) X(uint64, std::uint64_t)
#define WAYWISER_NVSHMEM_WORD_TYPES(X) \
  WAYWISER_NVSHMEM_BIT_TYPES(X)        \
  X(int, int) X(long, long) X(longlong, long long) X(size, std::size_t) X(ptrdiff, std::ptrdiff_t)
#define WAYWISER_NVSHMEM_WHOLE_TYPES(X) \
  WAYWISER_NVSHMEM_WORD_TYPES(X)        \
  X(char, char)                         \
  X(schar, signed char)                 \
  X(short, short)                       \
  X(uchar, unsigned char)               \
  X(ushort, unsigned short) X(int8, std::int8_t) X(int16, std::int16_t) X(uint8, std::uint8_t) X(uint16, std::uint16_t)
#if defined(__CUDACC__)
#define WAYWISER_NVSHMEM_HALF_TYPES(X) X(half, __half) X(bfloat16, __nv_bfloat16)
#else
#define WAYWISER_NVSHMEM_HALF_TYPES(X)
#endif
#define WAYWISER_NVSHMEM_FLOAT_TYPES(X) X(float, float) X(double, double) WAYWISER_NVSHMEM_HALF_TYPES(X)
#define WAYWISER_NVSHMEM_TYPES(X) WAYWISER_NVSHMEM_WHOLE_TYPES(X) WAYWISER_NVSHMEM_FLOAT_TYPES(X)
// X(BITS, TYPE) for elements of so many bits.
#define WAYWISER_NVSHMEM_SIZES(X) \
  X(8, std::uint8_t) X(16, std::uint16_t) X(32, std::uint32_t) X(64, std::uint64_t) X(128, waywiser::nvshmem::Bits128)

using nvshmem_team_t = std::int32_t;
struct nvshmem_team_config_t {
  int num_contexts;
};

inline constexpr nvshmem_team_t NVSHMEM_TEAM_INVALID = -1, NVSHMEM_TEAM_WORLD = 0, NVSHMEM_TEAM_SHARED = 1,
                                NVSHMEMX_TEAM_NODE = 2;
inline constexpr int NVSHMEMX_SUCCESS = 0;

namespace waywiser::nvshmem {

using one_sided::Scope;

struct alignas(16) Bits128 {
  std::uint64_t words[2];
};

// The present device of the caller.
WAYWISER_NVSHMEM_HOST int device_here() {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess)
    fail("nvshmem: cudaGetDevice", cudaGetErrorString(error));
  return device;
}

WAYWISER_NVSHMEM_HOST On on(cudaStream_t stream) { return {stream, false}; }

#if defined(__CUDACC__)

namespace {

// Of this file's kernels.
__constant__ NvshmemTerms terms_here;

const char* publish_here(const NvshmemTerms& terms) {
  const cudaError_t error = cudaMemcpyToSymbol(terms_here, &terms, sizeof terms);
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

[[maybe_unused]] const bool added = add_module(publish_here);

// Blocks may have up to three dimensions, and know this file's heap.
class NvshmemBlock : public one_sided::CudaHeapBlock {
 public:
  __device__ static const one_sided::HeapTerms& terms() { return terms_here.heap; }
  // There is no notice for the host yet: CUDA's own, as of an assert(), says why.
  [[noreturn]] __device__ static void stop_without_heap() {
    __assert_fail("a kernel communicates before nvshmem_malloc has made the symmetric memory", "waywiser/nvshmem.h", 0,
                  "nvshmem");
    trap();
  }
  __device__ unsigned index_in(Scope scope) const {
    return scope == Scope::thread ? 0 : scope == Scope::warp ? thread() % 32 : thread();
  }
  __device__ unsigned count_of(Scope scope) const {
    const unsigned all = blockDim.x * blockDim.y * blockDim.z, left = all - thread() / 32 * 32;
    return scope == Scope::thread ? 1 : scope == Scope::block ? all : left < 32 ? left : 32;
  }
  __device__ void give(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take_apart(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    one_sided::copy_apart(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take_later(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }

 private:
  __device__ static unsigned thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
};

}  // namespace

using NvshmemRanks = one_sided::OneSided<NvshmemBlock>;

// run(ranks) with the heap.
template <typename Run>
WAYWISER_NVSHMEM_DEVICE auto with_ranks(Run run) {
  NvshmemBlock block;
  const NvshmemRanks ranks(block, terms_here.heap);
  return run(ranks);
}

// run(team), and 0; if there is no such team, not 0.
template <Scope scope, typename Run>
WAYWISER_NVSHMEM_DEVICE int with_team(int handle, Run run) {
  if (handle < 0 || handle >= NvshmemTerms::most_teams || terms_here.teams[handle].size == 0) return -1;
  return with_ranks([&](const NvshmemRanks& ranks) {
    run(one_sided::Team<NvshmemBlock, scope>(ranks, terms_here.teams[handle]));
    return 0;
  });
}

#endif

}  // namespace waywiser::nvshmem
