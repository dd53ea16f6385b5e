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

TEST(FilePart, PiecesThatFollowEachOtherAreOnePartAgain) {
  std::vector<std::byte> memory(64);
  const auto part = [&](Bytes offset, std::size_t at, Bytes bytes) {
    return FilePart{offset, {memory.data() + at, bytes, host(0)}};
  };
  const std::vector<FilePart> parts{part(3, 0, 20), part(30, 20, 4), part(34, 30, 4)};
  const std::vector<FilePart> again = joined(cut(parts, 8, 4));
  ASSERT_EQ(again.size(), 3u) << "one is elsewhere in the file, one in memory";
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(again[i].offset == parts[i].offset && again[i].memory.bytes == parts[i].memory.bytes);
}

TEST(PieceQueue, GivesEachPieceOnceAndNothingWhenItIsWithdrawn) {
  std::vector<std::byte> memory(64);
  const FilePart part{0, {memory.data(), 64, host(0)}};
  PieceQueue queue(cut({&part, 1}, 8, 4));
  EXPECT_EQ(queue.take()->offset, 0u);
  EXPECT_EQ(queue.take_load(20, 4).size(), 2u);
  EXPECT_EQ(queue.take_load(1, 4).size(), 1u) << "one at least";
  const std::span<const FilePart> rest = queue.withdraw();
  ASSERT_EQ(rest.size(), 4u);
  EXPECT_EQ(rest.front().offset, 32u);
  EXPECT_EQ(queue.take(), nullptr);
  EXPECT_TRUE(queue.take_load(64, 4).empty());
  EXPECT_TRUE(queue.withdraw().empty());
}

TEST(FilePart, BeyondAnyFileIsRefused) {
  const FilePart part{Bytes{1} << 63, {nullptr, 1, host(0)}};
  EXPECT_THROW(check_parts({&part, 1}), Error);
}

}  // namespace
}  // namespace waywiser
