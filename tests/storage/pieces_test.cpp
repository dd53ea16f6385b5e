#include "waywiser/storage/pieces.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Ranges = std::vector<std::pair<Bytes, Bytes>>;

Ranges ranges(Bytes offset, Bytes bytes, Bytes chunk, Bytes alignment) {
  std::vector<std::byte> memory(bytes);
  const FilePart part{offset, {memory.data(), bytes, host(0)}};
  Ranges found;
  for (const FilePart& piece : cut({&part, 1}, chunk, alignment)) {
    EXPECT_EQ(piece.memory.data - memory.data(), static_cast<std::ptrdiff_t>(piece.offset - offset));
    found.emplace_back(piece.offset, piece.end());
  }
  return found;
}

TEST(FilePart, IsCutAtBlocksOfTheFile) {
  EXPECT_EQ(ranges(0, 16, 8, 4), (Ranges{{0, 8}, {8, 16}}));
  EXPECT_EQ(ranges(0, 17, 8, 4), (Ranges{{0, 8}, {8, 16}, {16, 17}}));
  EXPECT_EQ(ranges(3, 14, 8, 4), (Ranges{{3, 4}, {4, 12}, {12, 16}, {16, 17}}));
  EXPECT_EQ(ranges(5, 2, 8, 4), (Ranges{{5, 7}}));
  EXPECT_EQ(ranges(5, 4, 8, 4), (Ranges{{5, 8}, {8, 9}}));
  EXPECT_EQ(ranges(4, 8, 2, 4), (Ranges{{4, 8}, {8, 12}}));  // a chunk has a block at least
  EXPECT_EQ(ranges(7, 0, 8, 4), Ranges{});
}

TEST(FilePart, PiecesOfAnyPartFollowEachOtherAndKeepTheChunk) {
  for (Bytes offset = 0; offset < 9; ++offset)
    for (Bytes bytes = 1; bytes < 40; ++bytes) {
      Bytes at = offset;
      for (const auto& [from, to] : ranges(offset, bytes, 8, 4)) {
        EXPECT_EQ(from, at);
        EXPECT_TRUE(to > from && to - from <= 8);
        EXPECT_TRUE(from % 4 == 0 || from == offset);
        at = to;
      }
      EXPECT_EQ(at, offset + bytes);
    }
}

TEST(FilePart, BeyondAnyFileIsRefused) {
  const FilePart part{Bytes{1} << 63, {nullptr, 1, host(0)}};
  EXPECT_THROW(check_parts({&part, 1}), Error);
}

}  // namespace
}  // namespace waywiser
