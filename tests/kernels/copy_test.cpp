#include <gtest/gtest.h>

#include <vector>

#include "waywiser/device/stream.hpp"
#include "waywiser/kernels/copy_body.hpp"
#include "waywiser/kernels/pattern_body.hpp"

namespace waywiser {
namespace {

struct Case {
  Bytes destination, source, bytes;
};

class CopyBody : public testing::TestWithParam<Case> {};

TEST_P(CopyBody, MovesEveryByteAndNoOther) {
  const auto [to, from, bytes] = GetParam();
  std::vector<std::byte> source(bytes + 64), destination(bytes + 64, std::byte{0x55});
  for (Bytes i = 0; i < source.size(); ++i) source[i] = pattern_byte(3, i);
  for (unsigned block = 0; block < 2; ++block)
    for (unsigned thread = 0; thread < 5; ++thread)
      copy_body(ThreadContext{block, 2, thread, 5}, destination.data() + to, source.data() + from, bytes);
  for (Bytes i = 0; i < destination.size(); ++i) {
    const bool inside = i >= to && i < to + bytes;
    ASSERT_EQ(destination[i], inside ? source[i - to + from] : std::byte{0x55}) << i;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Bytes bytes : {1u, 15u, 16u, 17u, 640u, 1281u, 5000u})
    for (Bytes to : {0u, 3u})
      for (Bytes from : {0u, 1u, 2u, 3u, 7u, 8u, 11u}) all.push_back({to, from, bytes});
  return all;
}

INSTANTIATE_TEST_SUITE_P(SizesAndAlignments, CopyBody, testing::ValuesIn(cases()));

}  // namespace
}  // namespace waywiser
