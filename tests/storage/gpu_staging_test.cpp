#include "waywiser/storage/gpu_staging.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <utility>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Another road, whose calls are counted; the first call of each waits for the others' first ones.
class CountedRoad final : public FileRoad {
 public:
  CountedRoad(std::atomic<int>& calls, std::latch& all) : calls_(calls), all_(all) {}
  std::vector<FilePart> pieces(FileUse use, const StorageFile& file, std::span<const FilePart> parts) const override {
    return road_->pieces(use, file, parts);
  }
  void move(FileUse use, const StorageFile& file, PieceQueue& pieces) override {
    ++calls_;
    if (!std::exchange(met_, true)) all_.arrive_and_wait();
    road_->move(use, file, pieces);
  }

 private:
  std::atomic<int>& calls_;
  std::latch& all_;
  bool met_ = false;
  std::unique_ptr<FileRoad> road_ = storage_mechanism("buffered").open(parse_way("buffered"));
};

class Staging : public testing::Test {
 protected:
  // Reads the parts into memory of a GPU; true: all bytes are there. Parts are (offset, bytes).
  bool comes(const std::vector<std::pair<Bytes, Bytes>>& wanted, Bytes chunk, int lanes = 1) {
    put_file(folder_ / "a", bytes_);
    const StorageFile file = StorageFile::for_reading(folder_ / "a");
    std::vector<Memory> memories;
    std::vector<FilePart> parts;
    for (const auto& [offset, count] : wanted) {
      memories.push_back(platform_->allocate(gpu(1), count, Allocation::gpu));
      parts.push_back({offset, memories.back().region().slice(0, count)});
    }
    std::latch all(lanes);
    const std::vector<std::unique_ptr<FileRoad>> roads = roads_of(lanes, all);
    StagedRoad(staging_, roads, chunk).run(FileUse::read, file, parts);
    const auto stream = platform_->open_stream(gpu(1));
    for (const FilePart& part : parts) {
      std::vector<std::byte> found(part.memory.bytes);
      stream->copy(region_of(found), part.memory);
      stream->synchronize(Deadline::in(10));
      if (!std::equal(found.begin(), found.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(part.offset)))
        return false;
    }
    return true;
  }

  std::vector<std::unique_ptr<FileRoad>> roads_of(int lanes, std::latch& all) {
    calls_ = 0;
    std::vector<std::unique_ptr<FileRoad>> roads;
    for (int i = 0; i < lanes; ++i) roads.push_back(std::make_unique<CountedRoad>(calls_, all));
    return roads;
  }

  StorageFolder folder_;
  std::vector<std::byte> bytes_ = storage_bytes(3'000'001);
  std::shared_ptr<Platform> platform_ = open_virtual_platform({.gpus = 2});
  GpuStaging staging_{platform_};
  std::atomic<int> calls_{0};
};

TEST_F(Staging, SmallPartsOfOneGpuAreUnderWayTogether) {
  std::vector<std::pair<Bytes, Bytes>> parts;
  for (Bytes i = 0; i < 100; ++i) parts.push_back({i * 20'011 % 2'000'000, 1 + i * 37 % 5000});
  EXPECT_TRUE(comes(parts, 1 << 20));
  EXPECT_EQ(calls_, 1);
}

TEST_F(Staging, PartsLargerThanABufferGoThroughSeveral) {
  EXPECT_TRUE(comes({{0, 3'000'001}, {77, 2'000'000}, {5, 10}}, 256 << 10));
  EXPECT_TRUE(comes({{0, 3'000'001}, {4096, 1 << 20}}, 1 << 20)) << "with larger buffers than before";
  EXPECT_TRUE(comes({{1, 3'000'000}}, 64 << 10));
}

TEST_F(Staging, LanesAreUnderWayTogether) {
  EXPECT_TRUE(comes({{77, 2'900'000}}, 64 << 10, 3));
  EXPECT_EQ(calls_, 46);
  EXPECT_TRUE(comes({{0, 3'000'001}}, 1 << 20, 3)) << "with larger buffers than before";
}

TEST_F(Staging, LanesWriteAllBytes) {
  put_file(folder_ / "a", {});
  const StorageFile file(Descriptor(::open((folder_ / "a").c_str(), O_RDWR | O_CLOEXEC)), "a", FileUse::write);
  const Memory memory = platform_->allocate(gpu(1), bytes_.size(), Allocation::gpu);
  const Region all_of_it = memory.region().slice(0, bytes_.size());
  const auto stream = platform_->open_stream(gpu(1));
  stream->copy(all_of_it, region_of(bytes_));
  stream->synchronize(Deadline::in(10));
  for (const int lanes : {1, 3}) {
    std::latch all(lanes);
    const FilePart part{0, all_of_it};
    const std::vector<std::unique_ptr<FileRoad>> roads = roads_of(lanes, all);
    StagedRoad(staging_, roads, 64 << 10).run(FileUse::write, file, {&part, 1});
    EXPECT_EQ(bytes_of_file(folder_ / "a"), bytes_) << lanes;
    ASSERT_EQ(::ftruncate(file.cached_descriptor(), 0), 0);
  }
}

TEST_F(Staging, WhatOneLaneCannotReadIsAnErrorOfAll) {
  put_file(folder_ / "a", bytes_);
  const StorageFile file = StorageFile::for_reading(folder_ / "a");
  const Memory memory = platform_->allocate(gpu(0), bytes_.size() + 1, Allocation::gpu);
  std::latch all(3);
  const FilePart part{0, memory.region().slice(0, bytes_.size() + 1)};
  const std::vector<std::unique_ptr<FileRoad>> roads = roads_of(3, all);
  EXPECT_THROW(StagedRoad(staging_, roads, 64 << 10).run(FileUse::read, file, {&part, 1}), Error);
}

}  // namespace
}  // namespace waywiser
