#include "waywiser/comm/memory_window.hpp"

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
  MemoryWindow window = group.expose(region_of(memory));
  const int right = (group.rank() + 1) % group.size(), left = (group.rank() + group.size() - 1) % group.size();
  std::uint64_t turn = 0;
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, most}) {
    std::iota(block.begin(), block.end(), static_cast<std::uint64_t>(group.rank()) + count);
    const Region given = region_of(block).slice(0, count * 8);
    group.put(given, window, right, 0);
    group.signal(window, right, most * 8, ++turn);
    group.wait(window, most * 8, turn);
    for (std::size_t i = 0; i < count; ++i)
      require_that(memory[i] == static_cast<std::uint64_t>(left) + count + i, "the block that was put");
    std::vector<std::uint64_t> back(count);
    group.get(region_of(back), window, right, 0);
    require_that(std::equal(back.begin(), back.end(), block.begin()), "the block read back");
    group.barrier();
  }
}

TEST(MemoryWindow, BlocksAndSignalsGoAroundARing) {
  for (const int size : {1, 2, 3}) EXPECT_EQ(TestRanks(size).in_processes(put_around), no_problems) << size;
}

TEST(MemoryWindow, PutsHaveArrivedAfterAFlush) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<std::byte> memory(group.rank() == 0 ? 0 : 1 << 20), data(1 << 20, std::byte{7});
    MemoryWindow window = group.expose(region_of(memory));
    require_that(window.bytes_of(0) == 0 && window.bytes_of(1) == 1 << 20, "the sizes");
    if (group.rank() == 0) {
      group.put(region_of(data), window, 1, 0);
      group.flush();
    }
    group.barrier();
    if (group.rank() == 1) require_that(memory == data, "the data");
    group.barrier();
  }),
            no_problems);
}

TEST(MemoryWindow, WhatIsOutsideIsRefused) {
  EXPECT_EQ(TestRanks(1).in_threads([](Group& group) {
    std::vector<std::byte> memory(64), data(65);
    MemoryWindow window = group.expose(region_of(memory));
    EXPECT_THROW(group.put(region_of(data), window, 0, 0), Error);
    EXPECT_THROW(group.get(region_of(memory), window, 0, 1), Error);
    EXPECT_THROW(group.get(region_of(memory), window, 1, 0), Error);
    EXPECT_THROW(group.signal(window, 0, 60, 1), Error);
    EXPECT_THROW(group.signal(window, 0, 64, 1), Error);
    EXPECT_THROW(group.wait(window, 4, 1), Error);
    EXPECT_THROW(group.put({data.data(), 8, host(0)}, window, 0, ~Bytes{0}), Error);
  }),
            no_problems);
}

TEST(MemoryWindow, ASignalThatNeverComes) {
  TestRanks ranks(1);
  ranks.timeout = 0.1;
  const auto problems = ranks.in_threads([](Group& group) {
    std::vector<std::uint64_t> memory(1);
    MemoryWindow window = group.expose(region_of(memory));
    group.wait(window, 0, 5);
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("the flag is 0, not 5"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
