#pragma once

#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::block {

WAYWISER_DEVICE inline bool are_four(const std::byte* data, std::uint64_t bytes) {
  return bytes >= 4 && reinterpret_cast<std::uintptr_t>(data) % 4 == 0;
}

// Up to four bytes in the low end of a word.
WAYWISER_DEVICE inline std::uint32_t load_bytes(const std::byte* data, std::uint64_t bytes) {
  if (are_four(data, bytes)) return *reinterpret_cast<const std::uint32_t*>(data);
  std::uint32_t value = 0;
  WAYWISER_ROLLED
  for (unsigned i = 0; i < 4 && i < bytes; ++i) value |= static_cast<std::uint32_t>(data[i]) << (8 * i);
  return value;
}

WAYWISER_DEVICE inline void store_bytes(std::byte* data, std::uint64_t bytes, std::uint32_t value) {
  if (are_four(data, bytes)) {
    *reinterpret_cast<std::uint32_t*>(data) = value;
    return;
  }
  WAYWISER_ROLLED
  for (unsigned i = 0; i < 4 && i < bytes; ++i) data[i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename Word>
WAYWISER_DEVICE inline bool lies_well(const std::byte* data, std::uint64_t bytes, std::uint64_t offset) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Word) == 0 && offset + sizeof(Word) <= bytes;
}

// A user's block as words. `exact`: it is aligned and a whole number of words. Otherwise four bytes at once, or one,
// are used where necessary.
template <typename Word, bool exact>
WAYWISER_DEVICE inline Word load_word(const std::byte* data, std::uint64_t bytes, std::uint64_t index) {
  const std::uint64_t offset = index * sizeof(Word);
  if constexpr (!exact) {
    if (!lies_well<Word>(data, bytes, offset)) {
      Word word{};
      WAYWISER_UNROLL
      for (std::uint64_t at = 0; at < sizeof(Word); at += 4)
        if (offset + at < bytes) word.words[at / 4] = load_bytes(data + offset + at, bytes - offset - at);
      return word;
    }
  }
  return *reinterpret_cast<const Word*>(data + offset);
}

template <bool exact, typename Word>
WAYWISER_DEVICE inline void store_word(std::byte* data, std::uint64_t bytes, std::uint64_t index, const Word& word) {
  const std::uint64_t offset = index * sizeof(Word);
  if constexpr (!exact) {
    if (!lies_well<Word>(data, bytes, offset)) {
      WAYWISER_UNROLL
      for (std::uint64_t at = 0; at < sizeof(Word); at += 4)
        if (offset + at < bytes) store_bytes(data + offset + at, bytes - offset - at, word.words[at / 4]);
      return;
    }
  }
  *reinterpret_cast<Word*>(data + offset) = word;
}

}  // namespace waywiser::block
