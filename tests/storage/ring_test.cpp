#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

int descriptor_of_ring() {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(each.path(), gone) == "anon_inode:[io_uring]")
      return std::stoi(each.path().filename());
  }
  return -1;
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Whole blocks at their ends: the ring moves them itself.
struct Blocks {
  explicit Blocks(Bytes count) : bytes(count), memory(static_cast<std::byte*>(std::aligned_alloc(4096, count))) {
    std::fill_n(memory.get(), bytes, std::byte{0xEE});
  }
  FilePart part(Bytes offset) const { return {offset, {memory.get(), bytes, host(0)}}; }
  Bytes bytes;
  std::unique_ptr<std::byte, FreeMemory> memory;
};

TEST(Ring, WhatItDidNotTakeWhenItFailedIsNeverMoved) {
  StorageFolder folder;
  const std::vector<std::byte> bytes = storage_bytes(1 << 20);
  put_file(folder / "a", bytes);
  const StorageFile file = StorageFile::for_reading(folder / "a");
  const StorageMechanism& mechanism = storage_mechanism("io_uring");
  if (const auto why = mechanism.why_not(file, FileUse::read)) GTEST_SKIP() << *why;
  const auto road = mechanism.open(parse_way("io_uring(chunk=64K,depth=4)"));
  const auto read = [&](const Blocks& into, Bytes offset) {
    const FilePart part = into.part(offset);
    road->run(FileUse::read, file, {&part, 1});
  };
  read(Blocks(4096), 0);
  const int ring = descriptor_of_ring();
  ASSERT_GE(ring, 0);
  const Descriptor kept(::dup(ring)), other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::dup2(other.number(), ring), ring);
  const Blocks given(256 << 10), next(256 << 10);
  EXPECT_THROW(read(given, 0), Error);
  ASSERT_EQ(::dup2(kept.number(), ring), ring);
  read(next, 512 << 10);
  EXPECT_TRUE(std::equal(next.memory.get(), next.memory.get() + next.bytes, bytes.begin() + (512 << 10)));
  EXPECT_TRUE(std::all_of(given.memory.get(), given.memory.get() + given.bytes,
                          [](std::byte each) { return each == std::byte{0xEE}; }));
}

}  // namespace
}  // namespace waywiser
