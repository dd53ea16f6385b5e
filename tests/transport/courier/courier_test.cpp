#include "waywiser/transport/courier/courier.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/transport/courier/last_copy.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience = 20;

VirtualMachine one_gpu() {
  VirtualMachine machine;
  machine.gpus = 1;
  return machine;
}

// The same tests on a virtual GPU and, where there is one, on a CUDA device.
class CourierTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cuda") {
      if (const auto why = why_no_cuda()) GTEST_SKIP() << *why;
      platform_ = open_cuda_platform();
    } else {
      platform_ = open_virtual_platform(one_gpu());
    }
    gpu_stream_ = platform_->open_stream(gpu(0));
    host_stream_ = platform_->open_stream(host(0));
    near_ = platform_->allocate(host(0), 300000, Allocation::pageable);
    far_ = platform_->allocate(gpu(0), 300000, Allocation::gpu);
  }

  void TearDown() override {
    near_ = {};
    far_ = {};
  }

  std::unique_ptr<Transport> open(Place source, Place destination, const CourierOptions& options = {},
                                  bool repeats = true) {
    return open_courier({"courier", source, destination, 1, {}}, {.platform = *platform_, .repeats = repeats}, options);
  }

  // Both directions: what arrived is the pattern, and the bytes around it are as they were.
  void check_both_ways(const CourierOptions& options, Bytes bytes, Bytes near_offset, Bytes far_offset,
                       std::uint64_t seed) {
    const Region far = far_.region();
    const Region there = far.slice(far_offset, bytes);
    const Region here = near_.region().slice(near_offset, bytes);
    fill_pattern(*gpu_stream_, far, 99);
    gpu_stream_->synchronize(Deadline::in(patience));
    fill_pattern(*host_stream_, here, seed);
    open(host(0), gpu(0), options)->put(there, here, *host_stream_);
    EXPECT_EQ(wrong(there, seed), 0u) << bytes << " bytes to the GPU";
    EXPECT_EQ(wrong(far.slice(0, far_offset), 99), 0u);
    fill_pattern(*host_stream_, near_.region(), 98);
    open(gpu(0), host(0), options)->put(here, there, *host_stream_);
    EXPECT_EQ(wrong(here, seed), 0u) << bytes << " bytes from the GPU";
    EXPECT_EQ(wrong(near_.region().slice(0, near_offset), 98), 0u);
  }

  Bytes wrong(ConstRegion region, std::uint64_t seed) {
    Stream& stream = region.place.is_gpu() ? *gpu_stream_ : *host_stream_;
    return count_mismatches(stream, region, seed, Deadline::in(patience));
  }

  std::unique_ptr<Platform> platform_;
  std::unique_ptr<Stream> gpu_stream_, host_stream_;
  Memory near_, far_;
};

TEST_P(CourierTest, MovesAnySizeAtAnyAlignment) {
  std::uint64_t seed = 1;
  for (Bytes bytes :
       {1u, 4u, 8u, 11u, 12u, 13u, 371u, 372u, 373u, 1024u, 4096u, 18432u, 18433u, 65536u, 65537u, 200001u}) {
    check_both_ways({}, bytes, seed % 3, 8 * (seed % 2) + seed % 4, seed);
    ++seed;
  }
}

TEST_P(CourierTest, ZeroBytesAreAValidPut) {
  fill_pattern(*gpu_stream_, far_.region(), 7);
  gpu_stream_->synchronize(Deadline::in(patience));
  open(host(0), gpu(0))->put(far_.region().slice(5, 0), near_.region().slice(0, 0), *host_stream_);
  EXPECT_EQ(wrong(far_.region(), 7), 0u);
}

TEST_P(CourierTest, StartsAgainAfterItsKernelHasEnded) {
  CourierOptions hasty;
  hasty.idle = 0;
  hasty.residence = 0;
  hasty.virtual_shape = {2, 2};
  const auto to = open(host(0), gpu(0), hasty);
  const auto from = open(gpu(0), host(0), hasty);
  const Region back = near_.region().slice(100000, 5000);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    fill_pattern(*host_stream_, near_.region().slice(0, 5000), seed);
    to->put(far_.region().slice(0, 5000), near_.region().slice(0, 5000), *host_stream_);
    from->put(back, far_.region().slice(0, 5000), *host_stream_);
    ASSERT_EQ(wrong(back, seed), 0u) << seed;
  }
}

TEST_P(CourierTest, SeesWhatOtherWorkOfTheGpuHasJustWritten) {
  for (const bool repeats : {true, false}) {
    const auto from = open(gpu(0), host(0), {}, repeats);
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      for (Bytes bytes : {700u, 20000u}) {
        fill_pattern(*gpu_stream_, far_.region().slice(0, bytes), seed);
        gpu_stream_->synchronize(Deadline::in(patience));
        from->put(near_.region().slice(0, bytes), far_.region().slice(0, bytes), *host_stream_);
        ASSERT_EQ(wrong(near_.region().slice(0, bytes), seed), 0u);
      }
  }
}

// With a rest after each put the kernel is never started; else by the second put, or never if none follows soon.
TEST_P(CourierTest, MovesTheSameWithoutItsKernelAndWhenThatStarts) {
  for (const Seconds idle : {0.0, 10.0})
    for (const bool rests : {true, false}) {
      CourierOptions options;
      options.idle = idle;
      options.residence = 1e-3;
      const auto to = open(host(0), gpu(0), options, false), from = open(gpu(0), host(0), options, false);
      const Region here = near_.region().slice(1, 5000), back = near_.region().slice(100000, 5000);
      const Region there = far_.region().slice(16, 5000), flag = far_.region().slice(8, 8);
      for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        fill_pattern(*host_stream_, here, seed);
        to->put(there, here, *host_stream_);
        to->put(there.slice(0, 0), here.slice(0, 0), *host_stream_);
        to->signal(flag, seed, *host_stream_);
        gpu_stream_->wait_value(flag, seed);
        gpu_stream_->synchronize(Deadline::in(patience));
        from->put(back, there, *host_stream_);
        ASSERT_EQ(wrong(back, seed), 0u) << idle << " " << rests;
        if (!rests) continue;
        to->rest();
        from->rest();
      }
    }
}

TEST_P(CourierTest, AllocatingAndFreeingBetweenMessagesDoesNotHang) {
  const auto to = open(host(0), gpu(0));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    fill_pattern(*host_stream_, near_.region().slice(0, 64), seed);
    to->put(far_.region().slice(0, 64), near_.region().slice(0, 64), *host_stream_);
    const Memory other = platform_->allocate(gpu(0), 1 << 20, Allocation::gpu);
    EXPECT_EQ(wrong(far_.region().slice(0, 64), seed), 0u);
  }
}

TEST_P(CourierTest, SignalWritesTheFlagAtEitherEnd) {
  const auto to = open(host(0), gpu(0));
  to->signal(far_.region().slice(64, 8), 0x1122334455667788, *host_stream_);
  gpu_stream_->wait_value(far_.region().slice(64, 8), 0x1122334455667788);
  gpu_stream_->synchronize(Deadline::in(patience));
  const auto from = open(gpu(0), host(0));
  from->signal(near_.region().slice(8, 8), 77, *host_stream_);
  EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(near_.region().data + 8), 77u);
  EXPECT_THROW(to->signal(far_.region().slice(1, 8), 1, *host_stream_), Error);
}

TEST_P(CourierTest, RefusesAStreamOfTheGpu) {
  const auto to = open(host(0), gpu(0));
  EXPECT_THROW(to->put(far_.region().slice(0, 8), near_.region().slice(0, 8), *gpu_stream_), Error);
}

INSTANTIATE_TEST_SUITE_P(On, CourierTest, testing::Values("virtual_gpu", "cuda"),
                         [](const auto& test) { return test.param; });

TEST(Courier, ADeadGpuIsATimeoutThatNamesIt) {
  VirtualMachine machine = one_gpu();
  machine.dead_gpu = 0;
  const auto platform = open_virtual_platform(machine);
  const auto stream = platform->open_stream(host(0));
  const Memory near = platform->allocate(host(0), 64, Allocation::pageable);
  const Memory far = platform->allocate(gpu(0), 64, Allocation::gpu);
  CourierOptions options;
  options.patience = 0.01;
  for (const bool repeats : {true, false}) {
    const auto to =
        open_courier({"courier", host(0), gpu(0), 1, {}}, {.platform = *platform, .repeats = repeats}, options);
    try {
      to->put(far.region(), near.region(), *stream);
      FAIL() << "the dead GPU answered";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::timeout);
      EXPECT_NE(std::string(error.what()).find("gpu0"), std::string::npos) << error.what();
    }
  }
}

TEST(Courier, TheKernelIsWorthItsStartBehindACopyThatSoonFollowsAnother) {
  LastCopy copies;
  EXPECT_FALSE(copies.follows(5, 10));  // the first one
  copies.ended(6);
  EXPECT_TRUE(copies.follows(15.5, 10));
  EXPECT_FALSE(copies.follows(16, 10));
  copies.forget();
  EXPECT_FALSE(copies.follows(7, 10));
}

TEST(Courier, IsForHostAndGpuOnly) {
  const auto platform = open_virtual_platform(one_gpu());
  EXPECT_FALSE(why_unavailable({"courier", host(0), gpu(0), 1, {}}, {*platform}));
  EXPECT_TRUE(why_unavailable({"courier", host(0), host(0), 1, {}}, {*platform}));
  const auto plain = open_host_platform();
  EXPECT_TRUE(why_unavailable({"courier", host(0), gpu(0), 1, {}}, {*plain}));
}

}  // namespace
}  // namespace waywiser
