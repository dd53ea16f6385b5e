#include "waywiser/table/piece_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace waywiser {
namespace {

constexpr Bytes mebibyte = Bytes{1} << 20;

bool is_aligned(const std::shared_ptr<std::byte>& block) {
  return reinterpret_cast<std::uintptr_t>(block.get()) % 64 == 0;
}

TEST(PieceBlocks, WhatIsSentIsUsedAgainWhenItsOwnersHaveGone) {
  PieceBlocks blocks(nullptr, host(0));
  blocks.use_again(mebibyte);
  auto first = blocks.to_send(mebibyte - 64), second = blocks.to_send(mebibyte);
  const std::byte* const where = first.get();
  EXPECT_NE(first, second);
  first.reset();
  EXPECT_EQ(blocks.to_send(mebibyte / 2).get(), where);
  EXPECT_NE(blocks.to_send(100).get(), where);       // too short to take a whole piece
  EXPECT_NE(blocks.to_send(2 * mebibyte), nullptr);  // one row may be longer
}

// Each is written whole, and has what was written after all others were.
TEST(PieceBlocks, BlocksOfPartsLieApartAndOutliveTheirMaker) {
  std::vector<std::shared_ptr<std::byte>> all;
  const Bytes sizes[] = {100, mebibyte, mebibyte + 1, 40 * mebibyte, 0, mebibyte};
  {
    PieceBlocks blocks(nullptr, host(0));
    blocks.keep_together(2);
    for (int turn = 0; turn < 3; ++turn)
      for (const std::uint64_t part : {0, 1, 7})  // 7: of no part
        for (const Bytes bytes : sizes) {
          all.push_back(blocks.of_part(part, bytes));
          std::memset(all.back().get(), static_cast<int>(all.size()), bytes);
        }
    blocks.end_part(0);
    EXPECT_NE(blocks.of_part(0, mebibyte), nullptr);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(is_aligned(all[i]));
    const Bytes bytes = sizes[i % std::size(sizes)];
    const auto value = static_cast<std::byte>(i + 1);
    EXPECT_TRUE(std::all_of(all[i].get(), all[i].get() + bytes, [&](std::byte each) { return each == value; })) << i;
  }
}

}  // namespace
}  // namespace waywiser
