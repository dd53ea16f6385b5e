#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

// The unit of one load or store. It may alias any object.
template <typename Word, unsigned count>
struct alignas(sizeof(Word) * count) [[gnu::may_alias]] Vector {
  Word words[count];
};
using Vector16 = Vector<std::uint32_t, 4>;

// The number of loads that each thread has in flight before its first store.
inline constexpr unsigned copy_batch = 8;

// `Context` gives a thread's position: block, blocks, thread, threads (for example ThreadContext). Plain loads let the
// compiler keep a whole batch in registers.
template <typename Unit, typename Context>
WAYWISER_DEVICE inline void copy_vectors(const Context& at, Unit* destination, const Unit* source,
                                         std::uint64_t count) {
  const std::uint64_t tile = std::uint64_t{at.threads} * copy_batch;
  for (std::uint64_t first = at.block * tile; first < count; first += at.blocks * tile) {
    const std::uint64_t mine = first + at.thread;
    if (first + tile <= count) {
      Unit batch[copy_batch];
      for (unsigned i = 0; i < copy_batch; ++i) batch[i] = source[mine + std::uint64_t{i} * at.threads];
      for (unsigned i = 0; i < copy_batch; ++i) destination[mine + std::uint64_t{i} * at.threads] = batch[i];
    } else {
      Unit batch[copy_batch] = {};
      for (unsigned i = 0; i < copy_batch; ++i)
        if (mine + std::uint64_t{i} * at.threads < count) batch[i] = source[mine + std::uint64_t{i} * at.threads];
      for (unsigned i = 0; i < copy_batch; ++i)
        if (mine + std::uint64_t{i} * at.threads < count) destination[mine + std::uint64_t{i} * at.threads] = batch[i];
    }
  }
}

// Head and tail, which are shorter than a vector, byte by byte; the middle in vectors.
template <typename Unit, typename Context>
WAYWISER_DEVICE inline void copy_aligned(const Context& at, std::byte* destination, const std::byte* source,
                                         std::uint64_t bytes) {
  const std::uint64_t past = reinterpret_cast<std::uintptr_t>(destination) % sizeof(Unit);
  std::uint64_t head = past == 0 ? 0 : sizeof(Unit) - past;
  if (head > bytes) head = bytes;
  const std::uint64_t vectors = (bytes - head) / sizeof(Unit);
  const std::uint64_t tail = head + vectors * sizeof(Unit);
  if (at.block == 0) {
    for (std::uint64_t i = at.thread; i < head; i += at.threads) destination[i] = source[i];
    for (std::uint64_t i = tail + at.thread; i < bytes; i += at.threads) destination[i] = source[i];
  }
  copy_vectors(at, reinterpret_cast<Unit*>(destination + head), reinterpret_cast<const Unit*>(source + head), vectors);
}

// Uses the widest vectors to which both addresses are aligned.
template <typename Context>
WAYWISER_DEVICE inline void copy_body(const Context& at, std::byte* destination, const std::byte* source,
                                      std::uint64_t bytes) {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(destination) ^ reinterpret_cast<std::uintptr_t>(source);
  if (apart % 16 == 0)
    copy_aligned<Vector16>(at, destination, source, bytes);
  else if (apart % 8 == 0)
    copy_aligned<Vector<std::uint64_t, 1>>(at, destination, source, bytes);
  else if (apart % 4 == 0)
    copy_aligned<Vector<std::uint32_t, 1>>(at, destination, source, bytes);
  else if (apart % 2 == 0)
    copy_aligned<Vector<std::uint16_t, 1>>(at, destination, source, bytes);
  else
    copy_aligned<std::byte>(at, destination, source, bytes);
}

}  // namespace waywiser
