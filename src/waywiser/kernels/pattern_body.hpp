#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

using PatternWord __attribute__((may_alias)) = std::uint64_t;

// Bytes 8 * word to 8 * word + 7 of the pattern (splitmix64, counted from the seed).
WAYWISER_DEVICE inline std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t word) {
  std::uint64_t mixed = seed + (word + 1) * 0x9e3779b97f4a7c15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  return mixed ^ (mixed >> 31);
}

WAYWISER_DEVICE inline std::byte pattern_byte(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::byte>(pattern_word(seed, index / 8) >> (8 * (index % 8)));
}

template <typename Context>
WAYWISER_DEVICE inline void fill_body(const Context& at, std::byte* data, std::uint64_t bytes, std::uint64_t seed) {
  const std::uint64_t first = std::uint64_t{at.block} * at.threads + at.thread;
  const std::uint64_t step = std::uint64_t{at.blocks} * at.threads;
  const bool whole_words = reinterpret_cast<std::uintptr_t>(data) % 8 == 0;
  const std::uint64_t words = whole_words ? bytes / 8 : 0;
  PatternWord* out = reinterpret_cast<PatternWord*>(data);
  for (std::uint64_t word = first; word < words; word += step) out[word] = pattern_word(seed, word);
  for (std::uint64_t i = words * 8 + first; i < bytes; i += step) data[i] = pattern_byte(seed, i);
}

// The number of wrong bytes in this thread's share.
template <typename Context>
WAYWISER_DEVICE inline std::uint64_t count_body(const Context& at, const std::byte* data, std::uint64_t bytes,
                                                std::uint64_t seed) {
  const std::uint64_t first = std::uint64_t{at.block} * at.threads + at.thread;
  const std::uint64_t step = std::uint64_t{at.blocks} * at.threads;
  const bool whole_words = reinterpret_cast<std::uintptr_t>(data) % 8 == 0;
  const std::uint64_t words = whole_words ? bytes / 8 : 0;
  const PatternWord* in = reinterpret_cast<const PatternWord*>(data);
  std::uint64_t wrong = 0;
  for (std::uint64_t word = first; word < words; word += step) {
    std::uint64_t difference = in[word] ^ pattern_word(seed, word);
    for (; difference != 0; difference >>= 8)
      if ((difference & 0xff) != 0) ++wrong;
  }
  for (std::uint64_t i = words * 8 + first; i < bytes; i += step)
    if (data[i] != pattern_byte(seed, i)) ++wrong;
  return wrong;
}

}  // namespace waywiser
