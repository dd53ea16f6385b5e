#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/storage/shared_out.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace waywiser {
namespace {

class Roads : public testing::TestWithParam<const char*> {
 protected:
  Way way() const { return parse_way(GetParam()); }
  std::unique_ptr<FileRoad> road() const { return storage_mechanism(way().name).open(way()); }
  std::optional<std::string> why_not(const StorageFile& file, FileUse use) const {
    return storage_mechanism(way().name).why_not(file, use);
  }
  StorageFolder folder;
};

StorageFile to_write(const std::filesystem::path& path) {
  return {Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)), path.string(), FileUse::write};
}

// What error.what() says; empty if nothing is thrown.
template <typename Call>
std::string said_by(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
    return error.what();
  }
  return {};
}

constexpr Bytes length = 1'300'123;

TEST_P(Roads, ReadsAnyPart) {
  const std::vector<std::byte> bytes = storage_bytes(length);
  put_file(folder / "a", bytes);
  const StorageFile file = StorageFile::for_reading(folder / "a");
  if (const auto why = why_not(file, FileUse::read)) GTEST_SKIP() << *why;
  const auto way_to_file = road();
  for (const auto& [offset, count] : std::vector<std::pair<Bytes, Bytes>>{{0, length},
                                                                          {0, 4096},
                                                                          {4096, 65536},
                                                                          {1, 1},
                                                                          {4095, 2},
                                                                          {8191, 100'000},
                                                                          {length - 5, 5},
                                                                          {77, length - 77}}) {
    std::vector<std::byte> into(count);
    const FilePart part{offset, region_of(into)};
    way_to_file->run(FileUse::read, file, {&part, 1});
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    EXPECT_TRUE(std::equal(into.begin(), into.end(), from)) << offset << " " << count;
  }
}

TEST_P(Roads, ReadsManyPartsAtOnce) {
  const std::vector<std::byte> bytes = storage_bytes(length);
  put_file(folder / "a", bytes);
  const StorageFile file = StorageFile::for_reading(folder / "a");
  if (const auto why = why_not(file, FileUse::read)) GTEST_SKIP() << *why;
  std::vector<std::vector<std::byte>> into(200, std::vector<std::byte>(4096));
  std::vector<FilePart> parts;
  for (std::size_t i = 0; i < into.size(); ++i)
    parts.push_back({(i * 7919 * 64) % (length - 4096), region_of(into[i])});
  road()->run(FileUse::read, file, parts);
  for (std::size_t i = 0; i < into.size(); ++i)
    EXPECT_TRUE(
        std::equal(into[i].begin(), into[i].end(), bytes.begin() + static_cast<std::ptrdiff_t>(parts[i].offset)));
}

TEST_P(Roads, WritesAnyPart) {
  std::vector<std::byte> expected = storage_bytes(length);
  put_file(folder / "a", expected);
  const StorageFile file = to_write(folder / "a");
  if (const auto why = why_not(file, FileUse::write)) GTEST_SKIP() << *why;
  const auto way_to_file = road();
  unsigned seed = 2;
  for (const auto& [offset, count] : std::vector<std::pair<Bytes, Bytes>>{
           {0, 8192}, {5, 1}, {4095, 2}, {8191, 300'001}, {length - 3, 5000}, {12288, 65536}}) {
    std::vector<std::byte> from = storage_bytes(count, seed++);
    const FilePart part{offset, region_of(from)};
    way_to_file->run(FileUse::write, file, {&part, 1});
    expected.resize(std::max<std::size_t>(expected.size(), offset + count));
    std::copy(from.begin(), from.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  EXPECT_EQ(bytes_of_file(folder / "a"), expected);
}

TEST_P(Roads, TheEndOfTheFileIsAnErrorWithPathAndOffset) {
  for (const Bytes size : {Bytes{0}, Bytes{4096}, Bytes{100'000}}) {
    put_file(folder / "short", storage_bytes(size));
    const StorageFile file = StorageFile::for_reading(folder / "short");
    if (const auto why = why_not(file, FileUse::read)) GTEST_SKIP() << *why;
    std::vector<std::byte> into(size + 1);
    const FilePart part{0, region_of(into)};
    const std::string said = said_by([&] { road()->run(FileUse::read, file, {&part, 1}); });
    EXPECT_NE(said.find((folder / "short").string() + ": cannot read "), std::string::npos) << said;
    EXPECT_NE(said.find("the file ends at " + std::to_string(size)), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, Roads,
                         testing::Values("buffered", "buffered(chunk=64K,threads=3)", "direct", "direct(chunk=4K)",
                                         "direct(chunk=64K,threads=1)", "io_uring", "io_uring(chunk=4K,depth=5)",
                                         "io_uring(depth=1)", "io_uring(chunk=64K,depth=3,registered=1)", "mmap",
                                         "mmap(chunk=64K,threads=3)"));

TEST(StorageFaults, WhatTheSystemReportsIsAnErrorWithOffset) {
  std::vector<std::byte> memory(100);
  const FilePart part{8, region_of(memory)};
  const Way way{"buffered"};
  // Address 8 of a process cannot be read; a full device cannot be written.
  const StorageFile unreadable(Descriptor(::open("/proc/self/mem", O_RDONLY)), "unreadable", FileUse::read);
  EXPECT_EQ(said_by([&] { storage_mechanism("buffered").open(way)->run(FileUse::read, unreadable, {&part, 1}); }),
            "unreadable: cannot read 100 bytes at 8: Input/output error");
  const StorageFile full(Descriptor(::open("/dev/full", O_RDWR)), "full", FileUse::write);
  EXPECT_EQ(said_by([&] { storage_mechanism("buffered").open(way)->run(FileUse::write, full, {&part, 1}); }),
            "full: cannot write 100 bytes at 8: No space left on device");
}

TEST(StorageWays, OthersAreRefused) {
  for (const char* wrong :
       {"buffered(depth=2)", "io_uring(depth=0)", "direct(chunk=1K)", "mmap(threads=1025)", "io_uring(registered=2)"}) {
    const Way way = parse_way(wrong);
    EXPECT_THROW(storage_mechanism(way.name).open(way), Error) << wrong;
  }
  EXPECT_THROW(storage_mechanism("tape"), Error);
}

TEST(SharedOut, TheFirstErrorEndsIt) {
  std::atomic<int> begun{0};
  const auto work = [&](unsigned, std::size_t i) {
    ++begun;
    if (i == 3) throw Error(ErrorKind::io, "the fourth");
  };
  EXPECT_EQ(said_by([&] { share_out(100, 1, work); }), "the fourth");
  EXPECT_EQ(begun, 4);
  EXPECT_EQ(said_by([&] { share_out(100, 4, work); }), "the fourth");
}

}  // namespace
}  // namespace waywiser
