#include "waywiser/kernels/pattern.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "waywiser/kernels/pattern_body.hpp"

namespace waywiser {
namespace {

// Runs every thread of a grid, one after another, as a virtual GPU does.
template <typename Body>
void run_grid(unsigned blocks, unsigned threads, Body body) {
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned thread = 0; thread < threads; ++thread) body(ThreadContext{block, blocks, thread, threads});
}

Bytes count(const std::byte* data, Bytes bytes, std::uint64_t seed) {
  Bytes wrong = 0;
  run_grid(2, 3, [&](const ThreadContext& at) { wrong += count_body(at, data, bytes, seed); });
  return wrong;
}

TEST(Pattern, FillThenCountFindsNothingWrongAtAnySizeAndAlignment) {
  std::vector<std::byte> buffer(300);
  for (Bytes offset : {0u, 1u, 4u, 7u})
    for (Bytes bytes : {0u, 1u, 7u, 8u, 9u, 63u, 255u}) {
      std::fill(buffer.begin(), buffer.end(), std::byte{0xee});
      run_grid(2, 3, [&](const ThreadContext& at) { fill_body(at, buffer.data() + offset, bytes, 5); });
      EXPECT_EQ(count(buffer.data() + offset, bytes, 5), 0u) << offset << " " << bytes;
      for (Bytes i = 0; i < bytes; ++i) ASSERT_EQ(buffer[offset + i], pattern_byte(5, i));
      EXPECT_EQ(buffer[offset + bytes], std::byte{0xee});
    }
}

TEST(Pattern, EveryWrongByteCounts) {
  std::vector<std::byte> buffer(1000);
  run_grid(2, 3, [&](const ThreadContext& at) { fill_body(at, buffer.data(), 999, 7); });
  for (Bytes i : {0u, 1u, 500u, 998u}) buffer[i] ^= std::byte{1};
  EXPECT_EQ(count(buffer.data(), 999, 7), 4u);
}

TEST(Pattern, ShiftedDataOrAnotherSeedIsWrongNearlyEverywhere) {
  std::vector<std::byte> buffer(4096);
  run_grid(1, 1, [&](const ThreadContext& at) { fill_body(at, buffer.data(), 4096, 7); });
  EXPECT_GT(count(buffer.data(), 4096, 8), 4000u);
  EXPECT_GT(count(buffer.data() + 8, 4088, 7), 4000u);
}

}  // namespace
}  // namespace waywiser
