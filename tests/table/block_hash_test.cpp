#include "waywiser/table/block_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace waywiser {
namespace {

using Block = std::vector<std::byte>;

Block random_block(Bytes bytes) {
  std::mt19937 chance(static_cast<std::uint32_t>(bytes));
  Block block(bytes);
  for (std::byte& each : block) each = static_cast<std::byte>(chance());
  return block;
}

std::uint64_t hash_of(const Block& block, bool wide = false) {
  BlockHash hash(wide);
  hash.add(0, block.data(), block.size());
  return hash.value();
}

TEST(BlockHash, IsTheSameByVectors) {
  if (!has_wide_vectors()) GTEST_SKIP() << "this processor has no AVX2";
  for (const Bytes bytes : {0, 1, 63, 64, 65, 640, 4096, 5000}) {
    const Block block = random_block(bytes);
    EXPECT_EQ(hash_of(block, true), hash_of(block, false)) << bytes;
    EXPECT_EQ(hash_of_block(block.data(), bytes), hash_of(block)) << bytes;
  }
}

TEST(BlockHash, IsThatOfTheWholeHoweverItIsAdded) {
  const Block block = random_block(1000);
  for (const bool wide : {false, has_wide_vectors()}) {
    BlockHash hash(wide);
    alignas(64) std::byte copy[256] = {};
    hash.add(512, block.data() + 512, 488);
    hash.copy(256, copy, block.data() + 256, 256);
    hash.add(0, block.data(), 256);
    EXPECT_EQ(hash.value(), hash_of(block));
    EXPECT_EQ(std::memcmp(copy, block.data() + 256, 256), 0);
  }
}

TEST(BlockHash, SeesWhatChangesMovesOrIsLeftOut) {
  for (const Block& block : {random_block(1024), Block(1024)}) {
    const std::uint64_t whole = hash_of(block);
    for (std::size_t at = 0; at < block.size(); ++at)
      for (int bit = 0; bit < 8; ++bit) {
        Block other = block;
        other[at] ^= static_cast<std::byte>(1 << bit);
        ASSERT_NE(hash_of(other), whole) << at << ", " << bit;
      }
    EXPECT_NE(hash_of(Block(block.begin(), block.end() - 1)), whole);
  }
  const Block block = random_block(1024);
  for (const std::size_t length : {8u, 64u})
    for (std::size_t one = 0; one < block.size(); one += length)
      for (std::size_t two = one + length; two < block.size(); two += length) {
        Block other = block;
        std::swap_ranges(other.begin() + static_cast<std::ptrdiff_t>(one),
                         other.begin() + static_cast<std::ptrdiff_t>(one + length),
                         other.begin() + static_cast<std::ptrdiff_t>(two));
        ASSERT_NE(hash_of(other), hash_of(block)) << one << ", " << two;
      }
}

}  // namespace
}  // namespace waywiser
