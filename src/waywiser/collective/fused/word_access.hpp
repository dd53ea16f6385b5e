#pragma once

#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

// Byte i of a word; shifts instead of an index, which would put the word in memory.
template <typename Word>
WAYWISER_DEVICE inline void set_byte(Word& word, unsigned i, std::byte value) {
  WAYWISER_UNROLL
  for (unsigned part = 0; part < sizeof(Word) / 4; ++part)
    if (i / 4 == part) word.words[part] |= static_cast<std::uint32_t>(value) << (8 * (i % 4));
}

template <typename Word>
WAYWISER_DEVICE inline std::byte get_byte(const Word& word, unsigned i) {
  std::uint32_t value = 0;
  WAYWISER_UNROLL
  for (unsigned part = 0; part < sizeof(Word) / 4; ++part)
    if (i / 4 == part) value = word.words[part];
  return static_cast<std::byte>(value >> (8 * (i % 4)));
}

// A user's block as words: plain loads and stores where it is aligned, bytes where it is not and at its end.
template <typename Word>
WAYWISER_DEVICE inline Word load_word(const std::byte* data, std::uint64_t bytes, std::uint64_t index) {
  const std::uint64_t offset = index * sizeof(Word);
  if (reinterpret_cast<std::uintptr_t>(data) % sizeof(Word) == 0 && offset + sizeof(Word) <= bytes)
    return *reinterpret_cast<const Word*>(data + offset);
  Word word{};
  const std::uint64_t left = bytes - offset < sizeof(Word) ? bytes - offset : sizeof(Word);
  WAYWISER_ROLLED
  for (unsigned i = 0; i < left; ++i) set_byte(word, i, data[offset + i]);
  return word;
}

template <typename Word>
WAYWISER_DEVICE inline void store_word(std::byte* data, std::uint64_t bytes, std::uint64_t index, const Word& word) {
  const std::uint64_t offset = index * sizeof(Word);
  if (reinterpret_cast<std::uintptr_t>(data) % sizeof(Word) == 0 && offset + sizeof(Word) <= bytes) {
    *reinterpret_cast<Word*>(data + offset) = word;
    return;
  }
  const std::uint64_t left = bytes - offset < sizeof(Word) ? bytes - offset : sizeof(Word);
  WAYWISER_ROLLED
  for (unsigned i = 0; i < left; ++i) data[offset + i] = get_byte(word, i);
}

}  // namespace waywiser::fused
