#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::one_sided {

// A copy by `threads` threads, of which this is the one with `index`, in few registers: a kernel of 1,024 threads has
// 64 for each. copy_body() takes more.
template <typename Unit>
__device__ Unit* stepped(Unit* at, std::uint64_t step) {
  auto number = reinterpret_cast<std::uintptr_t>(at) + step;
  asm volatile("" : "+l"(number));  // one address after the other: the compiler would keep them all
  return reinterpret_cast<Unit*>(number);
}
// While a thread has `batch` units to copy: all of these are loaded, then stored.
template <unsigned batch, typename Unit>
__device__ void copy_batches(unsigned threads, Unit*& to, const Unit*& from, const Unit* end) {
  const std::uint64_t step = std::uint64_t{threads} * sizeof(Unit);
  while (from + std::uint64_t{batch - 1} * threads < end) {
    Unit units[batch];
    WAYWISER_UNROLL
    for (unsigned i = 0; i < batch; ++i, from = stepped(from, step)) units[i] = *from;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < batch; ++i, to = stepped(to, step)) *to = units[i];
  }
}
// Many threads load enough together by a few units each, and begin to store sooner.
template <unsigned batch, typename Unit>
__device__ void copy_units(unsigned index, unsigned threads, Unit* to, const Unit* from, std::uint64_t count) {
  constexpr unsigned small = batch < 4 ? batch : 4, many = 512;
  const Unit* end = from + count;
  from += index;
  to += index;
  if constexpr (batch > small)
    if (threads < many) copy_batches<batch>(threads, to, from, end);
  copy_batches<small>(threads, to, from, end);
  const std::uint64_t step = std::uint64_t{threads} * sizeof(Unit);
  const Unit* to_end = to + (end - from);
  Unit units[small] = {};  // what is not set would be kept from one call to the next
  WAYWISER_UNROLL
  for (unsigned i = 0; i + 1 < small; ++i, from = stepped(from, step))
    if (from < end) units[i] = *from;
  WAYWISER_UNROLL
  for (unsigned i = 0; i + 1 < small; ++i, to = stepped(to, step))
    if (to < to_end) *to = units[i];
}

template <typename Unit>
__device__ void copy_one(unsigned index, std::byte* to, const std::byte* from) {
  reinterpret_cast<Unit*>(to)[index] = reinterpret_cast<const Unit*>(from)[index];
}
// The one of a thread.
__device__ inline void copy_unit(unsigned index, unsigned shift, std::byte* to, const std::byte* from) {
  if (shift == 4)
    copy_one<Vector16>(index, to, from);
  else if (shift == 3)
    copy_one<Vector<std::uint64_t, 1>>(index, to, from);
  else if (shift == 2)
    copy_one<Vector<std::uint32_t, 1>>(index, to, from);
  else
    copy_one<std::byte>(index, to, from);
}

// The widest units, 1 << shift bytes, of which addresses and bytes are multiples.
__device__ inline unsigned shift_of(unsigned odd) {
  return odd % 16 == 0 ? 4 : odd % 8 == 0 ? 3 : odd % 4 == 0 ? 2 : 0;
}

// In the widest units that leave nothing, if each thread has one at most or there are fewer than `few` bytes; else in
// the widest to which both addresses are aligned, and what is left before and behind them byte by byte.
template <unsigned batch>
__device__ inline void copy_bytes(unsigned index, unsigned threads, std::byte* to, const std::byte* from,
                                  std::uint64_t bytes) {
  constexpr std::uint64_t few = 64;
  // In a loop of the caller, too, nothing is prepared and kept in registers.
  asm volatile("" : "+r"(index), "+r"(threads), "+l"(to), "+l"(from), "+l"(bytes));
  const auto to_at = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(to));
  const auto from_at = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from));
  const unsigned odd = to_at | from_at | static_cast<unsigned>(bytes);
  unsigned shift = shift_of(odd);
  std::uint64_t count = bytes >> shift;
  if (count <= threads) {  // many threads, few bytes: what a thread does for nothing holds up all
    if (index < count) copy_unit(index, shift, to, from);
    return;
  }
  if (odd % 16 != 0 && bytes >= few) {
    shift = shift_of(to_at ^ from_at);
    const unsigned head = -to_at & ((1u << shift) - 1);
    count = (bytes - head) >> shift;
    const auto ends = static_cast<unsigned>(bytes - (count << shift));
    for (unsigned i = index; i < ends; i += threads) {
      const std::uint64_t at = i < head ? i : i + (count << shift);
      to[at] = from[at];
    }
    to += head;
    from += head;
  }
  if (index >= count) return;
  if (shift == 4)
    copy_units<batch>(index, threads, reinterpret_cast<Vector16*>(to), reinterpret_cast<const Vector16*>(from), count);
  else if (shift == 3)
    copy_units<(batch < 4 ? batch : 4)>(index, threads, reinterpret_cast<Vector<std::uint64_t, 1>*>(to),
                                        reinterpret_cast<const Vector<std::uint64_t, 1>*>(from), count);
  else if (shift == 2)
    copy_units<(batch < 4 ? batch : 4)>(index, threads, reinterpret_cast<Vector<std::uint32_t, 1>*>(to),
                                        reinterpret_cast<const Vector<std::uint32_t, 1>*>(from), count);
  else
    copy_units<(batch < 4 ? batch : 4)>(index, threads, to, from, count);
}

// The same for what goes by the proxy, apart: slower, and in the few registers that a function has.
__device__ __noinline__ inline void copy_apart(unsigned index, unsigned threads, std::byte* to, const std::byte* from,
                                               std::uint64_t bytes) {
  copy_bytes<2>(index, threads, to, from, bytes);
}

}  // namespace waywiser::one_sided
