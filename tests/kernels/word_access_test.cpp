#include "waywiser/kernels/block/word_access.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "waywiser/kernels/block/ll_packet.hpp"

namespace waywiser {
namespace {

constexpr std::size_t room = 64;
using Room = std::array<std::byte, room>;

Room numbered(unsigned first) {
  alignas(16) Room bytes{};
  for (std::size_t i = 0; i < room; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

// A block at any distance from a boundary and of any length: each word holds its bytes, then zeros.
template <typename Word>
void check_words() {
  alignas(16) const Room from = numbered(1);
  for (std::size_t at = 0; at < 16; ++at)
    for (std::size_t bytes = 1; at + bytes < room; ++bytes) {
      alignas(16) Room to = numbered(100);
      for (std::size_t word = 0; word * sizeof(Word) < bytes; ++word) {
        const Word loaded = block::load_word<Word, false>(from.data() + at, bytes, word);
        const std::size_t begin = word * sizeof(Word), there = std::min(sizeof(Word), bytes - begin);
        std::vector<std::byte> expected(from.begin() + static_cast<std::ptrdiff_t>(at + begin),
                                        from.begin() + static_cast<std::ptrdiff_t>(at + begin + there));
        expected.resize(sizeof(Word));
        const auto* found = reinterpret_cast<const std::byte*>(&loaded);
        ASSERT_TRUE(std::ranges::equal(expected, std::span(found, sizeof(Word)))) << at << ' ' << bytes << ' ' << word;
        block::store_word<false>(to.data() + at, bytes, word, loaded);
      }
      Room expected = numbered(100);
      std::ranges::copy(std::span(from).subspan(at, bytes), expected.begin() + static_cast<std::ptrdiff_t>(at));
      ASSERT_EQ(to, expected) << at << ' ' << bytes;
    }
}

TEST(WordAccess, BlocksOfAnyAlignmentAndLengthAreReadAndWrittenAndNothingBeyond) {
  check_words<Vector16>();
  check_words<block::Word8>();
}

}  // namespace
}  // namespace waywiser
