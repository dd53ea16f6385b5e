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

}  // namespace waywiser::block
