#include "waywiser/device/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tests/base/error_of.hpp"
#include "tests/conformance/cases.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr StridedRows rows_of_cube{5, 2, 3, 4, 2, 20};  // 2 planes of 3 rows of 2 bytes

class StridedCopy : public testing::Test {
 protected:
  void SetUp() override {
    platform_ = open_virtual_platform(conformance::four_gpus());
    const Place place = gpu(0);
    stream_ = platform_->open_stream(place);
    array_ = platform_->allocate(place, array_bytes, Allocation::gpu);
    host_ = platform_->allocate(platform_->nearest_host(0), array_bytes, Allocation::pinned);
  }
  void copy(Region to, ConstRegion from) {
    stream_->copy(to, from);
    stream_->synchronize(Deadline::in(10));
  }
  Region host() { return host_.region().slice(0, array_bytes); }
  Region array() { return array_.region().slice(0, array_bytes); }

  static constexpr std::size_t array_bytes = 64;
  std::unique_ptr<Platform> platform_;
  std::unique_ptr<Stream> stream_;
  Memory array_, host_;
};

TEST_F(StridedCopy, GathersAndScattersRows) {
  for (std::size_t i = 0; i < array_bytes; ++i) host().data[i] = static_cast<std::byte>(i);
  copy(array(), host());
  std::fill_n(host().data, array_bytes, std::byte{255});
  gather_rows(*stream_, host().slice(0, 12), array(), rows_of_cube);
  stream_->synchronize(Deadline::in(10));
  const std::array<int, 13> wanted = {5, 6, 9, 10, 13, 14, 25, 26, 29, 30, 33, 34, 255};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(static_cast<int>(host().data[i]), wanted[i]) << i;

  for (std::size_t i = 0; i < 12; ++i) host().data[i] = static_cast<std::byte>(100 + i);
  scatter_rows(*stream_, array(), rows_of_cube, host().slice(0, 12));
  copy(host(), array());
  for (std::size_t i = 0, next = 0; i < array_bytes; ++i) {
    const bool in_rows = next < 12 && static_cast<int>(i) == wanted[next];
    EXPECT_EQ(static_cast<std::size_t>(host().data[i]), in_rows ? 100 + next : i) << i;
    next += in_rows ? 1 : 0;
  }
}

TEST_F(StridedCopy, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of([&] { gather_rows(*stream_, host().slice(0, 11), array(), rows_of_cube); }),
            "a strided copy of 12 bytes, to or from 11");
  EXPECT_EQ(error_of([&] { scatter_rows(*stream_, array().slice(0, 34), rows_of_cube, host().slice(0, 12)); }),
            "a strided copy beyond the end of an array");
  StridedRows uneven = rows_of_cube;
  uneven.plane_stride = 21;
  EXPECT_EQ(error_of([&] { gather_rows(*stream_, host().slice(0, 12), array(), uneven); }),
            "a strided copy: planes are not a multiple of the rows' stride apart");
}

}  // namespace
}  // namespace waywiser
