#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/copy.hpp"
#include "waywiser/kernels/pattern.hpp"

namespace waywiser {
namespace {

Deadline soon() { return Deadline::in(20); }

class CudaPlatformTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_cuda()) GTEST_SKIP() << *why;
    platform_ = open_cuda_platform();
    stream_ = platform_->open_stream(gpu(0));
  }

  // gpu1 when there is one that both can reach, else gpu0.
  Place other_gpu() {
    if (platform_->gpu_count() < 2 || platform_->why_no_peer_access(0, 1) || platform_->why_no_peer_access(1, 0))
      return gpu(0);
    platform_->set_peer_access(0, 1, true);
    platform_->set_peer_access(1, 0, true);
    return gpu(1);
  }

  std::unique_ptr<Platform> platform_;
  std::unique_ptr<Stream> stream_;
};

TEST(CudaPlatformWithout, SaysWhyThereIsNoGpu) {
  const auto why = why_no_cuda();
  if (!why) GTEST_SKIP() << "there is a GPU";
  EXPECT_FALSE(why->empty());
  EXPECT_THROW(open_cuda_platform(), Error);
}

TEST_F(CudaPlatformTest, PatternsAreFilledAndWrongBytesCounted) {
  const Memory memory = platform_->allocate(gpu(0), 1000003, Allocation::gpu);
  const Region region = memory.region();
  for (Bytes offset : {0u, 1u}) {
    const Region part = region.slice(offset, 1000002);
    fill_pattern(*stream_, part, 5);
    EXPECT_EQ(count_mismatches(*stream_, part, 5, soon()), 0u);
    EXPECT_GT(count_mismatches(*stream_, part, 6, soon()), 900000u);
  }
  const Memory zero = platform_->allocate(host(0), 1, Allocation::pinned);
  fill_pattern(*stream_, region, 5);
  stream_->copy(region.slice(777, 1), zero.region());
  EXPECT_LE(count_mismatches(*stream_, region, 5, soon()), 1u);
}

TEST_F(CudaPlatformTest, CopiesBetweenEveryKindOfMemory) {
  const Bytes bytes = 3 << 20;
  const Memory source = platform_->allocate(gpu(0), bytes, Allocation::gpu);
  fill_pattern(*stream_, source.region(), 9);
  const std::pair<Place, Allocation> kinds[] = {{host(0), Allocation::pageable},      {host(0), Allocation::pinned},
                                                {host(0), Allocation::shared},        {gpu(0), Allocation::gpu},
                                                {gpu(0), Allocation::gpu_mapped},     {other_gpu(), Allocation::gpu},
                                                {other_gpu(), Allocation::gpu_mapped}};
  for (const auto& [place, allocation] : kinds) {
    ASSERT_EQ(platform_->why_not_allocatable(place, allocation), std::nullopt);
    const Memory there = platform_->allocate(place, bytes, allocation);
    const Memory back = platform_->allocate(gpu(0), bytes, Allocation::gpu);
    stream_->copy(there.region(), source.region());
    stream_->copy(back.region(), there.region());
    EXPECT_EQ(count_mismatches(*stream_, back.region(), 9, soon()), 0u) << text(place);
  }
}

TEST_F(CudaPlatformTest, TheCopyKernelMovesAnyAlignmentBothWaysBetweenGpus) {
  const Place peer = other_gpu();
  const Memory here = platform_->allocate(gpu(0), 1 << 20, Allocation::gpu);
  const Memory there = platform_->allocate(peer, 1 << 20, Allocation::gpu);
  for (Bytes from : {0u, 1u, 8u})
    for (Bytes to : {0u, 2u, 4u, 8u, 16u})
      for (Bytes bytes : {1u, 100u, 700001u}) {
        const Region source = here.region().slice(from, bytes);
        const Region destination = there.region().slice(to, bytes);
        fill_pattern(*stream_, source, from + to + bytes);
        launch_copy(*stream_, destination, source, 7, 256);
        EXPECT_EQ(count_mismatches(*stream_, destination, from + to + bytes, soon()), 0u) << from << " " << to;
        fill_pattern(*stream_, source, 1);
        launch_copy(*stream_, source, destination, 3, 1024);
        EXPECT_EQ(count_mismatches(*stream_, source, from + to + bytes, soon()), 0u) << from << " " << to;
      }
}

TEST_F(CudaPlatformTest, KernelsThatShareALaunchCacheKeepTheirOwnGridsAndArguments) {
  constexpr Bytes each = 5000;
  const Memory from = platform_->allocate(gpu(0), 64 * each, Allocation::gpu);
  const Memory to = platform_->allocate(gpu(0), 64 * each, Allocation::gpu);
  const auto cache = platform_->create_launch_cache(gpu(0));
  ASSERT_NE(cache, nullptr);
  const auto copies = [&](unsigned seed) {
    for (unsigned i = 0; i < 64; ++i) {
      const Bytes bytes = each - i * 13;
      fill_pattern(*stream_, from.region().slice(i * each, bytes), seed + i);
      launch_copy(*stream_, to.region().slice(i * each, bytes), from.region().slice(i * each, bytes), 1 + i % 7,
                  32 * (1 + i % 8), cache.get());
    }
  };
  const auto check = [&](unsigned seed) {
    for (unsigned i = 0; i < 64; ++i)
      EXPECT_EQ(count_mismatches(*stream_, to.region().slice(i * each, each - i * 13), seed + i, soon()), 0u) << i;
  };
  copies(100);
  check(100);
  const auto graph = stream_->capture([&] { copies(300); });  // what is captured does not change with the cache
  copies(500);
  check(500);
  graph->launch(*stream_);
  check(300);
}

TEST_F(CudaPlatformTest, AFlagThatNobodyWritesIsATimeoutThatNamesTheGpu) {
  const Memory memory = platform_->allocate(gpu(0), 8, Allocation::gpu);
  const auto other = platform_->open_stream(gpu(0));
  stream_->write_value(memory.region(), 0);
  stream_->wait_value(memory.region(), 2);
  try {
    stream_->synchronize(Deadline::in(0.02));
    ADD_FAILURE() << "the wait ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout);
    EXPECT_NE(std::string(error.what()).find("gpu0"), std::string::npos);
  }
  other->write_value(memory.region(), 2);
  stream_->synchronize(soon());
}

TEST_F(CudaPlatformTest, StreamsWaitForEventsOfOtherDevicesAndTheHostCountsTheirTime) {
  const Place peer = other_gpu();
  const auto second = platform_->open_stream(peer);
  const Memory memory = platform_->allocate(gpu(0), 64 << 20, Allocation::gpu);
  const auto before = platform_->create_timed_event(gpu(0));
  const auto after = platform_->create_timed_event(gpu(0));
  stream_->record(*before);
  fill_pattern(*stream_, memory.region(), 3);
  stream_->record(*after);
  second->wait(*after);
  EXPECT_EQ(count_mismatches(*second, memory.region(), 3, soon()), 0u);
  EXPECT_TRUE(after->done());
  EXPECT_GT(after->since(*before), 0);
}

TEST_F(CudaPlatformTest, AnErrorInAHostCallComesOutOfSynchronize) {
  stream_->call([] { throw Error(ErrorKind::corrupt, "from the call"); });
  EXPECT_THROW(stream_->synchronize(soon()), Error);
  stream_->synchronize(soon());
}

TEST_F(CudaPlatformTest, HandlesOpenInTheirOwnProcessToo) {
  for (Allocation allocation : {Allocation::gpu, Allocation::gpu_mapped}) {
    const Memory memory = platform_->allocate(gpu(0), 5 << 20, allocation);
    const MemoryHandle handle = platform_->export_memory(memory);
    const Memory again = platform_->open_memory(handle);
    fill_pattern(*stream_, memory.region(), 4);
    EXPECT_EQ(count_mismatches(*stream_, again.region(), 4, soon()), 0u);
  }
  const Memory pinned = platform_->allocate(host(0), 4096, Allocation::pinned);
  EXPECT_THROW(platform_->export_memory(pinned), Error);
}

TEST_F(CudaPlatformTest, MoreMemoryThanThereIsIsAnErrorWithSizeAndPlace) {
  try {
    platform_->allocate(gpu(0), Bytes{1} << 50, Allocation::gpu);
    FAIL() << "it was allocated";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gpu0: 1024T"), std::string::npos) << error.what();
  }
  EXPECT_THROW(platform_->open_stream(gpu(4711)), Error);
}

TEST_F(CudaPlatformTest, StateNamesTheDriverAndEachGpu) {
  const Json state = Json::parse(platform_->state());
  EXPECT_EQ(state.at("cuda").at("gpus").size(), static_cast<std::size_t>(platform_->gpu_count()));
}

}  // namespace
}  // namespace waywiser
