#include "waywiser/storage/gpu_staging.hpp"

#include <gtest/gtest.h>

#include "tests/storage/storage_folder.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Another road, whose calls are counted.
class CountedRoad final : public FileRoad {
 public:
  void run(FileUse use, const StorageFile& file, std::span<const FilePart> parts) override {
    ++calls;
    road_->run(use, file, parts);
  }
  int calls = 0;

 private:
  std::unique_ptr<FileRoad> road_ = storage_mechanism("buffered").open(parse_way("buffered"));
};

class Staging : public testing::Test {
 protected:
  // Reads the parts into memory of two GPUs in turns; true: all bytes are there. Parts are (offset, bytes).
  bool comes(const std::vector<std::pair<Bytes, Bytes>>& wanted, Bytes chunk) {
    put_file(folder_ / "a", bytes_);
    const StorageFile file = StorageFile::for_reading(folder_ / "a");
    std::vector<Memory> memories;
    std::vector<FilePart> parts;
    for (const auto& [offset, count] : wanted) {
      memories.push_back(platform_->allocate(gpu(static_cast<int>(parts.size() % 2)), count, Allocation::gpu));
      parts.push_back({offset, memories.back().region().slice(0, count)});
    }
    staging_.run(road_, FileUse::read, file, parts, chunk);
    const auto stream = platform_->open_stream(gpu(0));
    for (const FilePart& part : parts) {
      std::vector<std::byte> found(part.memory.bytes);
      stream->copy(region_of(found), part.memory);
      stream->synchronize(Deadline::in(10));
      if (!std::equal(found.begin(), found.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(part.offset)))
        return false;
    }
    return true;
  }

  StorageFolder folder_;
  std::vector<std::byte> bytes_ = storage_bytes(3'000'001);
  std::shared_ptr<Platform> platform_ = open_virtual_platform({.gpus = 2});
  GpuStaging staging_{platform_};
  CountedRoad road_;
};

TEST_F(Staging, SmallPartsOfOneGpuAreUnderWayTogether) {
  std::vector<std::pair<Bytes, Bytes>> parts;
  for (Bytes i = 0; i < 100; ++i) parts.push_back({i * 20'011 % 2'000'000, 1 + i * 37 % 5000});
  EXPECT_TRUE(comes(parts, 1 << 20));
  EXPECT_EQ(road_.calls, 2);
}

TEST_F(Staging, PartsLargerThanABufferGoThroughSeveral) {
  EXPECT_TRUE(comes({{0, 3'000'001}, {77, 2'000'000}, {5, 10}}, 256 << 10));
  EXPECT_TRUE(comes({{0, 3'000'001}, {4096, 1 << 20}}, 1 << 20)) << "with larger buffers than before";
  EXPECT_TRUE(comes({{1, 3'000'000}}, 64 << 10));
}

}  // namespace
}  // namespace waywiser
