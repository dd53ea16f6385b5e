#pragma once

#include <cstdint>

#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::fused {

// Lines of 128 bytes, each with a number in its last eight: what eight neighbouring threads store at once becomes
// visible as a whole where GPUs are joined by NVLink, so that the number says that its line is there. Two lines carry
// 15 words of 16 bytes: slots 7 and 15 have room for half a word each, which together hold the word of lane 7.
struct alignas(16) LineSlot {
  std::uint64_t low, high;
};
inline constexpr unsigned lanes_of_pair = 16, words_of_pair = 15;
inline constexpr std::uint64_t bytes_of_pair = lanes_of_pair * sizeof(LineSlot);

// What one lane stores. `other`: the half that lane 7 stores for lane 15, where lanes cannot tell each other.
struct LineWord {
  LineSlot slot{};
  std::uint64_t other = 0;
};

// What one lane has seen of its pair. `there`: the line was, where lanes cannot see that together.
struct LineLook {
  LineSlot slot{};
  bool there = false;
};

WAYWISER_DEVICE inline bool ends_line(unsigned lane) { return lane % 8 == 7; }

WAYWISER_DEVICE inline std::uint64_t pairs_for(std::uint64_t bytes) {
  constexpr std::uint64_t data = words_of_pair * sizeof(Vector16);
  return (bytes + data - 1) / data;
}

}  // namespace waywiser::fused
