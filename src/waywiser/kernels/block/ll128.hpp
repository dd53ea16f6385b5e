#pragma once

#include <cstdint>

#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::block {

// Lines of the LL128 protocol: 128 bytes, each with a tag in its last eight. Over NVLink, a line that eight
// neighbouring threads store at once becomes visible as a whole, so the tag proves that its line has arrived. Two lines
// carry 15 words of 16 bytes: slots 7 and 15 have room for half a word each, which together hold the word of lane 7.
struct alignas(16) Ll128Slot {
  std::uint64_t low, high;
};
inline constexpr unsigned lanes_of_pair = 16, words_of_pair = 15;
// The data of two lines, and their size in memory.
inline constexpr std::uint64_t data_bytes_of_pair = words_of_pair * sizeof(Vector16),
                               wire_bytes_of_pair = lanes_of_pair * sizeof(Ll128Slot);

// The store of one lane. `other`: the half that lane 7 stores for lane 15, if lanes cannot exchange data.
struct Ll128Word {
  Ll128Slot slot{};
  std::uint64_t other = 0;
};

// One lane's view of its pair. `there`: whether the line had arrived, if lanes cannot decide that together.
struct Ll128Look {
  Ll128Slot slot{};
  bool there = false;
};

WAYWISER_DEVICE inline bool ends_line(unsigned lane) { return lane % 8 == 7; }

WAYWISER_DEVICE inline std::uint64_t pairs_for(std::uint64_t bytes) {
  return (bytes + data_bytes_of_pair - 1) / data_bytes_of_pair;
}

// Calls f(lane, pairs, end) by all threads of each warp: a thread's lane of `at_once` pairs of lines, of which the data
// have `end`.
template <unsigned at_once, typename Gpu, typename Function>
WAYWISER_DEVICE void each_tile_of_pairs(Gpu& gpu, std::uint64_t bytes, Function f) {
  const auto end = static_cast<std::uint32_t>(pairs_for(bytes));
  const std::uint32_t stride = gpu.threads() / lanes_of_pair;
  for (std::uint32_t begin = 0; begin < end; begin += stride * at_once)
    gpu.each_thread([&](unsigned thread) {
      std::uint32_t pairs[at_once];
      WAYWISER_UNROLL
      for (unsigned i = 0; i < at_once; ++i) pairs[i] = begin + thread / lanes_of_pair + i * stride;
      f(thread % lanes_of_pair, pairs, end);
    });
}

}  // namespace waywiser::block
