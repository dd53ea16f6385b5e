// How much of a GPU's memory groups set aside, on virtual GPUs.
#include "waywiser/collective/gpu/group_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "tests/collective/gpu_sums.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/comm/peer_memory/receive_arena.hpp"

namespace waywiser {
namespace {

// Groups of all ranks, of adjacent ranks, of ranks apart, and of all ranks but one.
std::deque<Group> four_groups(Group& group) {
  std::deque<Group> groups;
  const int half = (group.size() + 1) / 2;
  for (const int color : {0, group.rank() / half, group.rank() % 2, group.rank() == 0 ? -1 : 1})
    if (auto part = group.split(color)) groups.push_back(std::move(*part));
  return groups;
}

void stay_within_the_limit(Group& group) {
  const int mine = group.rank();
  require_that(set_aside(group, mine) == 0, "nothing is set aside when a group is joined");
  std::deque<Group> groups = four_groups(group);
  for (Group& each : groups) sums_of_all_sizes(each, mine);
  if (group.size() <= 8) sums_of_all_sizes(group, mine);
  for (Group& each : groups)
    if (each.size() <= 8) require_that(each.why_staged().empty(), each.why_staged());
  require_that(set_aside(group, mine) <= ReceiveArena::limit,
               std::to_string(set_aside(group, mine)) + " bytes are set aside");
  groups.clear();
  group.close();
  require_that(set_aside(group, mine) == 0, "all is given back");
}

TEST(GroupMemoryBound, HoldsForSeveralGroupsAndAllIsGivenBack) {
  for (const int size : {2, 4, 8}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    ranks.timeout = memory_patience;
    EXPECT_EQ(ranks.in_processes(stay_within_the_limit), no_problems);
  }
}

TEST(GroupMemoryBound, HoldsForTwelveRanks) {
  TestRanks ranks(12);
  ranks.virtual_gpus = 12;
  ranks.timeout = memory_patience;
  EXPECT_EQ(ranks.in_processes(stay_within_the_limit), no_problems);
}

// The memory is given back when the group closes, before it is destroyed.
TEST(GroupMemoryBound, ClosingGivesAllBack) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Memory exposed = group.platform()->allocate(gpu_of_rank(group), 4096, Allocation::gpu);
    const Window window = group.expose(exposed.region());
    auto part = group.split(0);
    for (Group* each : {&group, &*part})
      sum_ones(*each, group.rank(), 3 * mib, *group.platform()->open_stream(gpu_of_rank(group)));
    require_that(set_aside(group, group.rank()) > 100 * mib, "two groups have memory for large operations");
    group.close();
    require_that(set_aside(group, group.rank()) == 4096, "only the test's own memory is left");
  }),
            no_problems);
}

TEST(GroupMemoryBound, GroupsThatComeAndGoUseTheSameMemory) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    for (int i = 0; i < 60; ++i) {
      auto part = group.split(group.rank() == i % 3 ? -1 : 0);
      if (!part) continue;
      sum_ones(*part, group.rank(), i % 20 == 0 ? 2 * mib : 4096, *stream);
      require_that(part->why_staged().empty(), part->why_staged());
      require_that(set_aside(group, group.rank()) <= ReceiveArena::limit + 3 * group_bytes_apart(2, 2 * mib),
                   "what groups had that are gone is used again");
    }
  }),
            no_problems);
}

// The first groups have kernels. When all memory is taken, later groups say so and go through the host.
TEST(GroupMemoryBound, AGroupForWhichThereIsNoMemorySaysSo) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    std::deque<Group> groups;
    for (int i = 0; groups.empty() || (i < 200 && groups.back().why_staged().empty()); ++i) {
      groups.push_back(std::move(*group.split(0)));
      sum_ones(groups.back(), group.rank(), 4096, *stream);
    }
    require_that(groups.size() > 9, std::to_string(groups.size()) + " groups");
    require_that(groups.back().why_staged().find("other groups have all of the 64 MiB set aside on the GPU") == 0,
                 groups.back().why_staged());
    require_that(set_aside(group, group.rank()) <= ReceiveArena::limit, "no more than the limit");
    for (Group& each : groups) sum_ones(each, group.rank(), 4096, *stream);
    groups.pop_front();
    group.barrier();
    auto again = group.split(0);
    sum_ones(*again, group.rank(), 4096, *stream);
    require_that(again->why_staged().empty(), again->why_staged());
  }),
            no_problems);
}

// Messages of up to 1 MiB. Exchanges without room go by messages; their results are the same as by a kernel.
TEST(GroupMemoryBound, HoldsForPreparedExchanges) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int mine = group.rank();
    const auto stream = group.platform()->open_stream(gpu(mine));
    const auto allocate = [&](Bytes bytes) { return group.platform()->allocate(gpu(mine), bytes, Allocation::gpu); };
    const Memory given = allocate(2 * mib), taken = allocate(2 * mib);
    const auto prepare = [&](Bytes bytes) {
      const std::size_t count = bytes / sizeof(float), half = count / 2;
      ArrayPart halves = ArrayPart::whole(DataType::float32, count);
      halves.apart = true;
      halves.layout = {half, {}, {0, half}};  // a list of elements needs a receive buffer
      const std::vector<Elements> arrays{{given.region().slice(0, bytes), DataType::float32},
                                         {taken.region().slice(0, bytes), DataType::float32}};
      const ArrayExchange part{1 - mine, ArrayPart::whole(DataType::float32, count), halves, 0, 0};
      return Prepared::of_parts(group, std::span(&part, 1), arrays);
    };
    sum_ones(group, mine, 4096, *stream);
    const Bytes arrays = 6 * mib + 64 * 1024;  // with the packed array of the last exchange, and all programs
    std::deque<Prepared> all;
    while (all.empty() || all.back().why_staged().empty()) {
      all.push_back(prepare(mib));
      require_that(all.size() < 40, "there is room for all");
    }
    require_that(all.size() > 5, std::to_string(all.size()) + " have room");
    require_that(set_aside(group, mine) <= ReceiveArena::limit + arrays, "no more than the limit");
    require_that(
        all.back().why_staged().find("than is left of the 64 MiB that a process sets aside") != std::string::npos,
        all.back().why_staged());
    for (Prepared* each : {&all.front(), &all.back()}) {
      each->start();
      each->wait();
      each->start(*stream);
      group.synchronize(*stream);
    }
    const Bytes before = set_aside(group, mine);
    all.push_back(prepare(2 * mib));
    require_that(all.back().why_staged().empty() && set_aside(group, mine) > before + 4 * mib, "longer ones take more");
    all.clear();
    all.push_back(prepare(mib));
    all.push_back(prepare(mib));
    require_that(all.back().why_staged().empty(), all.back().why_staged());
    group.barrier();
  }),
            no_problems);
}

// Two groups, each on its own stream; the two ranks use them in opposite orders.
TEST(GroupMemoryBound, OperationsOfTwoGroupsAreUnderWayAtOnceInAnyOrder) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int mine = group.rank();
    Group parts[] = {std::move(*group.split(0)), std::move(*group.split(0))};
    for (Group& part : parts) sum_ones(part, mine, 2 * mib, *group.platform()->open_stream(gpu(mine)));
    constexpr Bytes sizes[] = {8, 100000, 2 * mib};
    struct Sum {
      Memory memory;
      std::unique_ptr<Stream> stream;
    };
    std::vector<Sum> sums;
    for (const Bytes bytes : sizes)
      for (int turn = 0; turn < 2; ++turn) {
        sums.push_back(
            {group.platform()->allocate(gpu(mine), bytes, Allocation::gpu), group.platform()->open_stream(gpu(mine))});
        const Elements all(sums.back().memory.region().slice(0, bytes), DataType::int32);
        parts[(turn + mine) % 2].all_reduce(all, all, ReduceOp::max, Mode::on(*sums.back().stream));
      }
    for (std::size_t i = 0; i < sums.size(); ++i)
      parts[(i + static_cast<std::size_t>(mine)) % 2].synchronize(*sums[i].stream);
    for (Group& part : parts) sums_of_all_sizes(part, mine);
  }),
            no_problems);
}

// Rank 0 has enqueued operations of two groups, by turns, before rank 1 begins with those of the second group.
TEST(GroupMemoryBound, ARankThatIsLateWithTwoGroupsFindsWhatTheOtherHasSent) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int mine = group.rank();
    Group parts[] = {std::move(*group.split(0)), std::move(*group.split(0))};
    for (Group& part : parts) sum_ones(part, mine, 2 * mib, *group.platform()->open_stream(gpu(mine)));
    constexpr std::size_t count = 500000;
    const std::unique_ptr<Stream> streams[] = {group.platform()->open_stream(gpu(mine)),
                                               group.platform()->open_stream(gpu(mine))};
    const Memory memory = group.platform()->allocate(gpu(mine), 4 * count * 2, Allocation::gpu);
    const Memory pinned = group.platform()->allocate(host(0), 4 * count * 2, Allocation::pinned);
    auto* const values = reinterpret_cast<std::int32_t*>(pinned.region().data);
    std::fill_n(values, 2 * count, 1);
    streams[0]->copy(memory.region().slice(0, 8 * count), pinned.region().slice(0, 8 * count));
    streams[0]->synchronize(Deadline::in(memory_patience));
    std::vector<int> word(1);
    if (mine == 1) group.recv(std::span(word), 0);
    for (const std::size_t turn : {0, 1, 2, 3}) {
      const std::size_t which = (turn + static_cast<std::size_t>(mine)) % 2;
      const Elements part(memory.region().slice(4 * count * which, 4 * count), DataType::int32);
      parts[which].all_reduce(part, part, ReduceOp::sum, Mode::on(*streams[which]));
    }
    if (mine == 0) group.send(std::span<const int>(word), 1);
    for (const std::size_t which : {0, 1}) parts[which].synchronize(*streams[which]);
    streams[0]->copy(pinned.region().slice(0, 8 * count), memory.region().slice(0, 8 * count));
    streams[0]->synchronize(Deadline::in(memory_patience));
    require_that(std::all_of(values, values + 2 * count, [](int value) { return value == 4; }), "both sums, twice");
  }),
            no_problems);
}

TEST(GroupMemoryBound, ARankThatDiesWhileItsMemoryIsOpenIsNamed) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  const auto problems = ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    auto part = group.split(0);
    for (Group* each : {&group, &*part}) sum_ones(*each, group.rank(), 2 * mib, *stream);
    if (group.rank() == 2) ::_exit(3);
    sum_ones(*part, group.rank(), 4096, *stream);
  });
  ASSERT_EQ(problems.size(), 3u);
  for (const int rank : {0, 1}) {
    const std::string& problem = problems[static_cast<std::size_t>(rank)];
    EXPECT_NE(problem.find("rank 2"), std::string::npos) << problem;
    EXPECT_EQ(problem.find("signal"), std::string::npos) << problem;
  }
}

}  // namespace
}  // namespace waywiser
