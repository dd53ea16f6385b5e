#include "waywiser/storage/blocks.hpp"

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "tests/storage/storage_folder.hpp"

namespace waywiser {
namespace {

constexpr Bytes block = 4096;

struct FreeAligned {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class BlocksOfAFile : public testing::Test {
 protected:
  BlocksOfAFile() {
    put_file(folder / "a", bytes);
    file.emplace(StorageFile::for_reading(folder / "a"));
    std::fill_n(memory.get(), room, std::byte{0xEE});
  }
  // In memory that is aligned as the file is at `offset`.
  FilePart part(Bytes offset, Bytes count) const { return {offset, {memory.get() + offset % block, count, host(0)}}; }

  static constexpr Bytes room = 64 * block;
  StorageFolder folder;
  const std::vector<std::byte> bytes = storage_bytes(20 * block + 1001);
  std::optional<StorageFile> file;
  std::unique_ptr<std::byte, FreeAligned> memory{static_cast<std::byte*>(std::aligned_alloc(block, room))};
};

TEST_F(BlocksOfAFile, HeadAndTailOfAPartThatIsReadGoWithTheBlocksBesideThem) {
  if (file->block() != block) GTEST_SKIP() << "blocks of " << file->block() << " bytes";
  using Ranges = std::vector<std::pair<Bytes, Bytes>>;
  const auto ranges = [&](FileUse use, Bytes offset, Bytes count, Bytes chunk) {
    const FilePart whole = part(offset, count);
    Ranges found;
    for (const FilePart& piece : direct_pieces(use, *file, {&whole, 1}, chunk)) {
      EXPECT_EQ(piece.memory.data - whole.memory.data, static_cast<std::ptrdiff_t>(piece.offset - offset));
      found.emplace_back(piece.offset, piece.end());
    }
    return found;
  };
  EXPECT_EQ(ranges(FileUse::read, 0, 43008, 64 << 10), (Ranges{{0, 43008}}));
  EXPECT_EQ(ranges(FileUse::read, 77, 43008, 64 << 10), (Ranges{{77, 43085}}));
  EXPECT_EQ(ranges(FileUse::read, 0, 3 * block + 1, 2 * block), (Ranges{{0, 2 * block}, {2 * block, 3 * block + 1}}));
  EXPECT_EQ(ranges(FileUse::read, 5, 4 * block, 2 * block), (Ranges{{5, 2 * block}, {2 * block, 4 * block + 5}}));
  EXPECT_EQ(ranges(FileUse::read, 5, 3, block), (Ranges{{5, 8}}));
  constexpr Bytes most = 256 << 10;  // that are one write through the page cache
  EXPECT_EQ(ranges(FileUse::write, 0, 2 * block, 8 * block), (Ranges{{0, 2 * block}}));
  EXPECT_EQ(ranges(FileUse::write, 0, 5120, 8 * block), Ranges{});
  EXPECT_EQ(ranges(FileUse::write, 5, most, 2 * most), Ranges{});
  EXPECT_EQ(ranges(FileUse::write, 5, most + 1, 2 * most), (Ranges{{block, most}}));
}

TEST_F(BlocksOfAFile, OnlyTheBlocksOfHeadAndTailBounce) {
  if (file->block() != block || file->why_not_direct()) GTEST_SKIP() << "no such blocks here";
  Mapping bounce;
  const BlockTransfer transfer(FileUse::read, *file, part(5, 3 * block), bounce);
  ASSERT_EQ(transfer.memory().size(), 3u);
  EXPECT_EQ(transfer.memory()[1].iov_base, memory.get() + block);
  EXPECT_EQ(transfer.memory()[1].iov_len, 2 * block);
  EXPECT_EQ(transfer.bytes(), 4 * block);
  EXPECT_EQ(bounce.length(), 2 * block);
}

// Whatever the kernel moves at once, and whatever bounces.
TEST_F(BlocksOfAFile, AllBytesComeToTheirPlacesAndNoOthersChange) {
  if (file->block() != block || file->why_not_direct()) GTEST_SKIP() << "no such blocks here";
  for (const Bytes at_once : {block, 2 * block, 64 * block})
    for (const bool always : {false, true})
      for (const Bytes offset : {Bytes{0}, Bytes{1}, block - 1, block, 3 * block + 77})
        for (const Bytes count : {Bytes{1}, Bytes{2}, block - 1, block, block + 1, 2 * block + 3, 5 * block}) {
          std::fill_n(memory.get(), room, std::byte{0xEE});
          const FilePart piece = part(offset, count);
          Mapping bounce;
          BlockTransfer rest(FileUse::read, *file, piece, bounce, always);
          for (ssize_t moved = -1;;) {
            std::vector<iovec> some(rest.memory().begin(), rest.memory().end());
            some.resize(1);
            some.front().iov_len = std::min<std::size_t>(some.front().iov_len, at_once);
            const auto from = static_cast<off_t>(rest.offset());
            moved = ::preadv(file->direct_descriptor(), some.data(), 1, from);
            ASSERT_GT(moved, 0);
            if (rest.moved(static_cast<Bytes>(moved), *file)) break;
          }
          const std::byte* begin = piece.memory.data;
          const auto expected = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
          EXPECT_TRUE(std::equal(begin, begin + count, expected)) << offset << " " << count << " " << always;
          const auto untouched = [](std::byte each) { return each == std::byte{0xEE}; };
          EXPECT_TRUE(std::all_of(static_cast<const std::byte*>(memory.get()), begin, untouched)) << offset;
          EXPECT_TRUE(std::all_of(begin + count, static_cast<const std::byte*>(memory.get()) + room, untouched));
        }
}

}  // namespace
}  // namespace waywiser
