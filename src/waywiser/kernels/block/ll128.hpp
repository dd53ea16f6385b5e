#pragma once

#include <cstdint>

#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::block {

// Lines of the LL128 protocol: 128 bytes, each with a tag in its last eight. What eight neighbouring threads store at
// once becomes visible as a whole where GPUs are joined by NVLink, so that the tag says that its line is there. Two
// lines carry 15 words of 16 bytes: slots 7 and 15 have room for half a word each, which together hold the word of
// lane 7.
struct alignas(16) Ll128Slot {
  std::uint64_t low, high;
};
inline constexpr unsigned lanes_of_pair = 16, words_of_pair = 15;
// Of two lines: their data, and what they take in memory.
inline constexpr std::uint64_t data_bytes_of_pair = words_of_pair * sizeof(Vector16),
                               wire_bytes_of_pair = lanes_of_pair * sizeof(Ll128Slot);

// What one lane stores. `other`: the half that lane 7 stores for lane 15, where lanes cannot tell each other.
struct Ll128Word {
  Ll128Slot slot{};
  std::uint64_t other = 0;
};

// What one lane has seen of its pair. `there`: the line was, where lanes cannot see that together.
struct Ll128Look {
  Ll128Slot slot{};
  bool there = false;
};

WAYWISER_DEVICE inline bool ends_line(unsigned lane) { return lane % 8 == 7; }

WAYWISER_DEVICE inline std::uint64_t pairs_for(std::uint64_t bytes) {
  return (bytes + data_bytes_of_pair - 1) / data_bytes_of_pair;
}

}  // namespace waywiser::block
