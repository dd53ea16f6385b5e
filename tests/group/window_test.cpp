#include "waywiser/group/window.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

template <typename T>
Region region_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T), host(0)};
}

// Each rank puts a block into its right neighbour's window, with a flag behind it; the neighbour looks when it is set.
void put_around(Group& group) {
  constexpr std::size_t most = 100000;
  std::vector<std::uint64_t> memory(most + 1), block(most);
  Window window = group.expose(region_of(memory));
  const int right = (group.rank() + 1) % group.size(), left = (group.rank() + group.size() - 1) % group.size();
  std::uint64_t turn = 0;
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, most}) {
    std::iota(block.begin(), block.end(), static_cast<std::uint64_t>(group.rank()) + count);
    const Region given = region_of(block).slice(0, count * 8);
    window.put(given, right, 0);
    window.signal(right, most * 8, ++turn);
    window.wait(most * 8, turn);
    for (std::size_t i = 0; i < count; ++i)
      require_that(memory[i] == static_cast<std::uint64_t>(left) + count + i, "the block that was put");
    std::vector<std::uint64_t> back(count);
    window.get(region_of(back), right, 0);
    require_that(std::equal(back.begin(), back.end(), block.begin()), "the block read back");
    group.barrier();
  }
}

TEST(Window, BlocksAndSignalsGoAroundARing) {
  for (const int size : {1, 2, 3}) EXPECT_EQ(TestRanks(size).in_processes(put_around), no_problems) << size;
}

TEST(Window, PutsHaveArrivedAfterAFlush) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<std::byte> memory(group.rank() == 0 ? 0 : 1 << 20), data(1 << 20, std::byte{7});
    Window window = group.expose(region_of(memory));
    require_that(window.bytes_of(0) == 0 && window.bytes_of(1) == 1 << 20, "the sizes");
    if (group.rank() == 0) {
      window.put(region_of(data), 1, 0);
      group.flush();
    }
    group.barrier();
    if (group.rank() == 1) require_that(memory == data, "the data");
    group.barrier();
  }),
            no_problems);
}

TEST(Window, WhatIsOutsideIsRefused) {
  EXPECT_EQ(TestRanks(1).in_threads([](Group& group) {
    std::vector<std::byte> memory(64), data(65);
    Window window = group.expose(region_of(memory));
    EXPECT_THROW(window.put(region_of(data), 0, 0), Error);
    EXPECT_THROW(window.get(region_of(memory), 0, 1), Error);
    EXPECT_THROW(window.get(region_of(memory), 1, 0), Error);
    EXPECT_THROW(window.signal(0, 60, 1), Error);
    EXPECT_THROW(window.signal(0, 64, 1), Error);
    EXPECT_THROW(window.wait(4, 1), Error);
    EXPECT_THROW(window.put({data.data(), 8, host(0)}, 0, ~Bytes{0}), Error);
  }),
            no_problems);
}

TEST(Window, ASignalThatNeverComes) {
  TestRanks ranks(1);
  ranks.timeout = 0.1;
  const auto problems = ranks.in_threads([](Group& group) {
    std::vector<std::uint64_t> memory(1);
    Window window = group.expose(region_of(memory));
    window.wait(0, 5);
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("the flag is 0, not 5"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
