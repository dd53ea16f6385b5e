#include "waywiser/device/copy_batch.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/conformance/cases.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

class CopyBatches : public testing::Test {
 protected:
  void SetUp() override {
    platform_ = open_virtual_platform(conformance::four_gpus());
    stream_ = platform_->open_stream(gpu(0));
    array_ = platform_->allocate(gpu(0), bytes, Allocation::gpu);
    host_ = platform_->allocate(platform_->nearest_host(0), bytes, Allocation::pinned);
  }
  Region array(Bytes offset, Bytes length) { return array_.region().slice(offset, length); }
  Region host(Bytes offset, Bytes length) { return host_.region().slice(offset, length); }

  static constexpr Bytes bytes = 64;
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<Stream> stream_;
  Memory array_, host_;
};

TEST_F(CopyBatches, MoveAllBlocksAgainAndAgain) {
  CopyBatch out, back;
  for (const Bytes at : {0, 8, 40}) {
    out.add(array(at, 4), host(at, 4));
    back.add(host(at + 4, 4), array(at, 4));
  }
  EXPECT_EQ(out.size(), 3u);
  for (int turn = 1; turn < 3; ++turn) {
    for (Bytes i = 0; i < bytes; ++i) host_.region().data[i] = static_cast<std::byte>(i * static_cast<Bytes>(turn));
    out.enqueue(*stream_);
    back.enqueue(*stream_);
    stream_->synchronize(Deadline::in(10));
    for (Bytes i = 0; i < bytes; ++i) {
      const bool moved = (i >= 4 && i < 8) || (i >= 12 && i < 16) || (i >= 44 && i < 48);
      EXPECT_EQ(host_.region().data[i], static_cast<std::byte>((moved ? i - 4 : i) * static_cast<Bytes>(turn))) << i;
    }
  }
}

TEST_F(CopyBatches, NeighboursBecomeOneCopy) {
  CopyBatch batch;
  batch.add(array(0, 4), host(8, 4));
  batch.add(array(4, 4), host(12, 4));
  batch.add(array(8, 0), host(16, 0));
  EXPECT_EQ(batch.size(), 1u);
  batch.add(array(8, 4), host(20, 4));
  batch.add(array(16, 4), host(24, 4));
  EXPECT_EQ(batch.size(), 3u);
}

TEST_F(CopyBatches, WhatDoesNotFitIsRefused) {
  CopyBatch batch;
  EXPECT_EQ(error_of([&] { batch.add(array(0, 4), host(0, 5)); }).find("no error"), std::string::npos);
  EXPECT_EQ(batch.size(), 0u);
  batch.enqueue(*stream_);
  batch.add(array(0, 4), host(0, 4));
  EXPECT_EQ(error_of([&] { static_cast<void>(stream_->capture([&] { batch.enqueue(*stream_); })); }),
            "a batch of copies, which no graph can capture");
}

TEST_F(CopyBatches, NeedGpus) {
  EXPECT_EQ(why_no_copy_batches(*platform_), std::nullopt);
  EXPECT_EQ(why_no_copy_batches(*open_host_platform()), "there is no GPU");
}

}  // namespace
}  // namespace waywiser
