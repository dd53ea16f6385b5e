#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "waywiser/kernels/block/half.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/block/tag.hpp"

namespace waywiser::block {

// A block of threads of a CUDA kernel: the twin of HostBlock.
class CudaBlock {
 public:
  static constexpr unsigned looks = 256;
  static constexpr bool may_leave = false;  // a wait in vain traps

  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned blocks() const { return gridDim.x; }
  __device__ unsigned threads() const { return blockDim.x; }
  template <typename Function>
  __device__ void each_thread(Function f) const {
    f(threadIdx.x);
  }
  __device__ void sync() const { __syncthreads(); }
  __device__ void sync_before_waits() const { __syncthreads(); }
  __device__ bool leads(unsigned thread) const { return thread % 32 == 0; }
  __device__ void join_warp() const { __syncwarp(); }
  __device__ void join_whole_warp() const { __syncwarp(); }

  __device__ LlPacket load_packet(const LlPacket* from) const {
    LlPacket packet;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(packet.low), "=r"(packet.number), "=r"(packet.high), "=r"(packet.mark)
                 : "l"(from)
                 : "memory");
    return packet;
  }
  __device__ void store_packet(LlPacket* to, const Word8& word, std::uint64_t tag) const {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(word.words[0]),
                 "r"(static_cast<std::uint32_t>(tag)), "r"(word.words[1]), "r"(mark_of(tag))
                 : "memory");
  }
  __device__ Ll128Word line_word(const Vector16& word, unsigned lane, std::uint64_t number) const {
    const std::uint64_t low = word.words[0] | std::uint64_t{word.words[1]} << 32;
    const std::uint64_t high = word.words[2] | std::uint64_t{word.words[3]} << 32;
    const std::uint64_t half = __shfl_sync(~0u, high, 7, lanes_of_pair);
    return {{lane == 15 ? half : low, ends_line(lane) ? number : high}, 0};
  }
  __device__ void store_line(Ll128Slot* slot, unsigned, const Ll128Word& word, bool active) const {
    if (active)
      asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(slot), "l"(word.slot.low), "l"(word.slot.high)
                   : "memory");
  }
  __device__ Ll128Look look_at_line(const Ll128Slot* slot, unsigned, std::uint64_t) const {
    Ll128Look look;
    asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];"
                 : "=l"(look.slot.low), "=l"(look.slot.high)
                 : "l"(slot)
                 : "memory");
    return look;
  }
  __device__ bool is_there(const Ll128Look& look, unsigned lane, std::uint64_t number) const {
    return !ends_line(lane) || look.slot.high == number;
  }
  __device__ Vector16 word_in_line(const Ll128Look& look, unsigned lane) const {
    const std::uint64_t half = __shfl_sync(~0u, look.slot.low, 15, lanes_of_pair);
    const std::uint64_t low = look.slot.low, high = lane == 7 ? half : look.slot.high;
    return {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
             static_cast<std::uint32_t>(high >> 32)}};
  }
  __device__ bool any(bool value) const { return __any_sync(~0u, value) != 0; }
  __device__ bool all(bool value) const { return __any_sync(~0u, !value) == 0; }
  __device__ void store_far(Vector16* to, const Vector16& words) const { *to = words; }
  __device__ std::uint32_t acquire(const std::uint32_t* flag) const {
    std::uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
  }
  __device__ std::uint64_t acquire(const std::uint64_t* flag) const {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
    return value;
  }
  __device__ std::uint32_t peek(const std::uint32_t* word) const {
    return *static_cast<const volatile std::uint32_t*>(word);
  }
  __device__ std::uint64_t peek(const std::uint64_t* word) const {
    return *static_cast<const volatile std::uint64_t*>(word);
  }
  __device__ void store(std::uint64_t* word, std::uint64_t value) const {
    *static_cast<volatile std::uint64_t*>(word) = value;
  }
  __device__ void post(std::uint32_t* word, std::uint32_t value) const { store(word, value); }
  __device__ void post(std::uint64_t* word, std::uint64_t value) const { store(word, value); }
  __device__ void release(std::uint32_t* flag, std::uint32_t value) const {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
  }
  __device__ void release(std::uint64_t* flag, std::uint64_t value) const {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
  }
  __device__ void tell(Announcement* to, const Announcement& announcement) const {
    asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(announcement.tag),
                 "l"(announcement.description)
                 : "memory");
  }
  __device__ Announcement told(const Announcement* by) const {
    Announcement seen;
    asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];"
                 : "=l"(seen.tag), "=l"(seen.description)
                 : "l"(by)
                 : "memory");
    return seen;
  }
  __device__ void trap() const {
    while (true) asm volatile("trap;" ::: "memory");
  }
  __device__ void store(std::uint32_t* word, std::uint32_t value) const {
    *static_cast<volatile std::uint32_t*>(word) = value;
  }
  __device__ void add(std::uint64_t* word, std::uint64_t value) const {
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ std::uint64_t nanoseconds() const {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  __device__ void pause() const {}
  __device__ std::byte*& address(unsigned rank) const {
    __shared__ std::byte* addresses[max_ranks];
    return addresses[rank];
  }

  template <typename T>
  __device__ static auto widen(T value) {
    if constexpr (std::is_same_v<T, Float16>)
      return __half2float(__ushort_as_half(value.bits));
    else if constexpr (std::is_same_v<T, Bfloat16>)
      return __uint_as_float(std::uint32_t{value.bits} << 16);
    else
      return value;
  }
  template <typename T, typename Wide>
  __device__ static T narrow(Wide value) {
    if constexpr (std::is_same_v<T, Float16>)
      return T{__half_as_ushort(__float2half_rn(value))};
    else if constexpr (std::is_same_v<T, Bfloat16>)
      return T{__bfloat16_as_ushort(__float2bfloat16_rn(value))};
    else
      return value;
  }
  // A NaN wins, and -0 is less than 0.
  template <typename T>
  __device__ static T least(T a, T b) {
    if constexpr (std::is_same_v<T, float>) {
      return least_float(a, b);
    } else if constexpr (std::is_same_v<T, double>) {
      if (a != a || b != b) return nan_of_double();
      if (a == b) return __longlong_as_double(__double_as_longlong(a) | __double_as_longlong(b));
    }
    return b < a ? b : a;
  }
  template <typename T>
  __device__ static T greatest(T a, T b) {
    if constexpr (std::is_same_v<T, float>) {
      return greatest_float(a, b);
    } else if constexpr (std::is_same_v<T, double>) {
      if (a != a || b != b) return nan_of_double();
      if (a == b) return __longlong_as_double(__double_as_longlong(a) & __double_as_longlong(b));
    }
    return a < b ? b : a;
  }

 private:
  // The instructions know -0, and from sm_80 on that a NaN wins.
  __device__ static float least_float(float a, float b) {
#if __CUDA_ARCH__ >= 800
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b));
#else
    if (a != a || b != b) return __int_as_float(0x7fffffff);
    asm("min.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b));
#endif
    return a;
  }
  __device__ static float greatest_float(float a, float b) {
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b));
#else
    if (a != a || b != b) return __int_as_float(0x7fffffff);
    asm("max.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b));
#endif
    return a;
  }
  __device__ static double nan_of_double() { return __longlong_as_double(0x7ff8000000000000ll); }
};

// The same where a wait in vain ends a thread in place of a trap: whoever meets others finds out whether all are left.
// That takes longer, so the kernels of this block are apart.
class LeavingBlock : public CudaBlock {
 public:
  static constexpr bool may_leave = true;

  __device__ void sync() const {
    if (__syncthreads_count(1) != static_cast<int>(threads())) leave();
  }
  __device__ void join_whole_warp() const {
    if (!all(true)) leave();
  }
  // A thread that has left does not count as one of which it is true.
  __device__ bool all(bool value) const { return __ballot_sync(~0u, value) == ~0u; }
  __device__ static void leave() { asm volatile("exit;" ::: "memory"); }
};

// Whether a kernel of this block must not begin, since an earlier operation has failed.
template <typename Block>
__device__ bool is_over(const std::uint32_t* failed) {
  if constexpr (Block::may_leave)
    return *static_cast<const volatile std::uint32_t*>(failed) != 0;
  else
    return false;
}

}  // namespace waywiser::block
