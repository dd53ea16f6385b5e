#pragma once

#include <cstdint>
#include <type_traits>

#include "waywiser/heap/device/cuda_bulk.cuh"
#include "waywiser/heap/device/cuda_copy.cuh"
#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::one_sided {

// A CudaBlock that also has what one-sided communication needs: the twin of HostHeapBlock. Blocks have one dimension.
class CudaHeapBlock : public block::CudaBlock {
 public:
  static constexpr bool is_staged = false;

  template <typename Function>
  __device__ void each_warp(Function f) const {
    f(threadIdx.x / 32);
  }
  __device__ unsigned index_in(Scope scope) const {
    return scope == Scope::thread ? 0 : scope == Scope::warp ? threadIdx.x % 32 : threadIdx.x;
  }
  __device__ unsigned count_of(Scope scope) const {
    if (scope == Scope::thread) return 1;
    const unsigned left = blockDim.x - threadIdx.x / 32 * 32;
    return scope == Scope::block ? blockDim.x : left < 32 ? left : 32;
  }
  __device__ void join(Scope scope) const {
    if (scope == Scope::warp) __syncwarp();
    if (scope == Scope::block) __syncthreads();
  }
  // Whether the threads of a scope are whole warps, which put and wait for lines.
  __device__ bool has_lines(Scope scope) const { return count_of(scope) % 32 == 0; }
  __device__ std::uint64_t of_first(Scope scope, std::uint64_t value) const {
    if (scope == Scope::warp) return __shfl_sync(~0u, value, 0);
    if (scope == Scope::thread) return value;
    __shared__ std::uint64_t shared;
    if (threadIdx.x == 0) shared = value;
    __syncthreads();
    const std::uint64_t first = shared;
    __syncthreads();
    return first;
  }

  __device__ void give(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take_apart(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy_apart(index_in(scope), count_of(scope), to, from, bytes);
  }
  __device__ void take_later(Scope scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    copy(index_in(scope), count_of(scope), to, from, bytes);
  }
  [[noreturn]] __device__ static void trap() {
    while (true) asm volatile("trap;" ::: "memory");
  }
  __device__ void fence() const { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
  __device__ void quiet() const { asm volatile("fence.sc.sys;" ::: "memory"); }

  template <typename Word>
  __device__ Word read(const Word* from) const {
    return *const_cast<const volatile Word*>(global(from));
  }
  template <typename Word>
  __device__ void write(Word* to, std::type_identity_t<Word> value) const {
    *const_cast<volatile Word*>(global(to)) = value;
  }
  // The number there, after which it is one more. With few registers: a compiler adds up the atomics of a warp.
  __device__ std::uint64_t next_of(std::uint64_t* number) const {
    std::uint64_t before;
    asm volatile("atom.relaxed.sys.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(number) : "memory");
    return before;
  }
  template <typename Word>
  __device__ Word fetch_add(Word* to, std::type_identity_t<Word> value) const {
    if constexpr (std::is_floating_point_v<Word>)
      return atomicAdd_system(global(to), value);
    else
      return static_cast<Word>(atomicAdd_system(bits(to), static_cast<Bits<Word>>(value)));
  }
  // The same without the word before: nothing waits for an answer.
  template <typename Word>
  __device__ void add_to(Word* to, std::type_identity_t<Word> value) const {
    if constexpr (std::is_same_v<Word, float>)
      asm volatile("red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
    else if constexpr (std::is_same_v<Word, double>)
      asm volatile("red.relaxed.sys.global.add.f64 [%0], %1;" ::"l"(to), "d"(value) : "memory");
    else if constexpr (sizeof(Word) == 4)
      asm volatile("red.relaxed.sys.global.add.u32 [%0], %1;" ::"l"(to), "r"(static_cast<std::uint32_t>(value))
                   : "memory");
    else
      asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(static_cast<std::uint64_t>(value))
                   : "memory");
  }
  template <typename Word>
  __device__ Word exchange(Word* to, std::type_identity_t<Word> value) const {
    return static_cast<Word>(atomicExch_system(bits(to), static_cast<Bits<Word>>(value)));
  }
  template <typename Word>
  __device__ Word compare_exchange(Word* to, std::type_identity_t<Word> expected,
                                   std::type_identity_t<Word> value) const {
    return static_cast<Word>(
        atomicCAS_system(bits(to), static_cast<Bits<Word>>(expected), static_cast<Bits<Word>>(value)));
  }
  template <typename Word>
  __device__ Word fetch_and(Word* to, std::type_identity_t<Word> value) const {
    return static_cast<Word>(atomicAnd_system(bits(to), static_cast<Bits<Word>>(value)));
  }
  template <typename Word>
  __device__ Word fetch_or(Word* to, std::type_identity_t<Word> value) const {
    return static_cast<Word>(atomicOr_system(bits(to), static_cast<Bits<Word>>(value)));
  }
  template <typename Word>
  __device__ Word fetch_xor(Word* to, std::type_identity_t<Word> value) const {
    return static_cast<Word>(atomicXor_system(bits(to), static_cast<Bits<Word>>(value)));
  }
  __device__ void release_add(std::uint64_t* to, std::uint64_t value) const {
    asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
  }

 protected:
  // By so many threads, of which this is one.
  __device__ static void copy(unsigned index, unsigned threads, std::byte* to, const std::byte* from,
                              std::uint64_t bytes) {
    copy_bytes<8>(index, threads, to, from, bytes);
  }

 private:
  // Memory of a heap is global: an access that may go anywhere costs instructions for shared and local memory.
  template <typename Word>
  __device__ static Word* global(Word* word) {
    return static_cast<Word*>(__cvta_global_to_generic(reinterpret_cast<std::uintptr_t>(word)));
  }
  template <typename Word>
  using Bits = std::conditional_t<sizeof(Word) == 4, unsigned int, unsigned long long>;
  template <typename Word>
  __device__ static Bits<Word>* bits(Word* word) {
    return reinterpret_cast<Bits<Word>*>(global(word));
  }
};

// One with shared memory to spare: its long puts go through that by bulk asynchronous copies, where the GPU has them.
// All threads give the same memory: at least least_staging bytes from a multiple of 128 on. A block without it has no
// state, so that none has to be kept in memory.
class CudaStagedBlock : public CudaHeapBlock {
 public:
  static constexpr bool is_staged = true;

  __device__ CudaStagedBlock(std::byte* memory, unsigned bytes) : bulk_(memory, bytes) {}
  __device__ bool has_bulk() const { return bulk_.piece() != 0; }
  __device__ const CudaBulk& bulk() const { return bulk_; }
  __device__ void order_bulk() const { CudaBulk::order(); }

 private:
  CudaBulk bulk_;
};

}  // namespace waywiser::one_sided
