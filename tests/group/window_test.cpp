#include "waywiser/group/window.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

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

// Parts of allocations that begin at odd addresses, of different sizes; rank 0 exposes nothing.
TEST(Window, OfPartsOfGpuMemory) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    Platform& platform = *group.platform();
    const Memory memory = platform.allocate(gpu_of_rank(group), 4096, Allocation::gpu);
    const Memory pinned = platform.allocate(host(0), 4096, Allocation::pinned);
    const auto stream = platform.open_stream(gpu_of_rank(group));
    const auto rank = static_cast<Bytes>(group.rank());
    const Window window = group.expose(memory.region().slice(40 * rank, 64 * rank));
    for (int other = 0; other < 3; ++other)
      require_that(window.bytes_of(other) == 64 * static_cast<Bytes>(other), "the size of each part");
    if (group.rank() == 0) {
      for (std::size_t i = 0; i < 16; ++i) pinned.region().data[i] = static_cast<std::byte>(i + 1);
      stream->copy(memory.region().slice(0, 16), pinned.region().slice(0, 16));
      stream->synchronize(Deadline::in(20));
      for (const int to : {1, 2}) {
        window.put(memory.region().slice(0, 16), to, 8);
        window.signal(to, 0, 5);
      }
    } else {
      window.wait(0, 5);
      stream->copy(pinned.region().slice(0, 4096), memory.region());
      stream->synchronize(Deadline::in(20));
      for (std::size_t i = 0; i < 16; ++i)
        require_that(pinned.region().data[40 * rank + 8 + i] == static_cast<std::byte>(i + 1),
                     "byte " + std::to_string(i));
    }
    group.barrier();
  }),
            no_problems);
}

// All ranks hear the reason of the one that cannot.
TEST(Window, MemoryThatCannotBeSharedIsRefusedAtAllRanks) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    const Memory memory = group.platform()->allocate(gpu_of_rank(group), 64, Allocation::gpu);
    Region region = memory.region();
    if (group.rank() == 1) region.data += 4096;  // of no allocation
    static_cast<void>(group.expose(region));
  });
  for (const std::string& problem : problems) EXPECT_NE(problem.find("rank 1: "), std::string::npos) << problem;
}

}  // namespace
}  // namespace waywiser
