// How much of a GPU's memory groups set aside, on virtual GPUs.
#include "waywiser/collective/gpu/group_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/peer_memory/receive_arena.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr Seconds memory_patience = 60;
constexpr Bytes mib = Bytes{1} << 20;

// The number of groups of that size for which there is room.
std::vector<GroupMemory> as_many_as_fit(int ranks) {
  std::vector<GroupMemory> all;
  for (Bytes left = ReceiveArena::limit;;) {
    const Bytes share = all.empty() ? left - 2 * mib * static_cast<Bytes>(ranks + 4) : left / 4;
    const auto memory = GroupMemory::within(ranks, share, left);
    if (!memory) return all;
    left -= memory->bytes();
    all.push_back(*memory);
  }
}

TEST(GroupMemoryOf, ManyGroupsFitIntoTheArenaAndTheFirstHasMost) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const auto all = as_many_as_fit(ranks);
    EXPECT_GE(all.size(), 9u) << ranks << " ranks";
    Bytes sum = 0;
    for (const GroupMemory& each : all) sum += each.bytes();
    EXPECT_LE(sum, ReceiveArena::limit);
    EXPECT_GT(all.front().bytes(), ReceiveArena::limit / 3) << ranks << " ranks";
    EXPECT_EQ(all.front().fused.ll128_bytes, mib) << ranks << " ranks";
  }
}

TEST(GroupMemoryOf, WhatIsSmallIsOneKernelInEveryGroup) {
  for (int ranks = 2; ranks <= 8; ++ranks)
    for (const GroupMemory& memory : as_many_as_fit(ranks)) {
      CollectiveCall call;
      call.ranks = ranks;
      call.count = 8192;
      for (const auto operation : {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                                   Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
        call.operation = operation;
        for (const bool ll128 : {true, false}) {
          const fused::Method method = fused::default_method(call, call.count, ll128);
          EXPECT_EQ(FusedCollective::pieces(call, DataType::uint8, method, memory.fused), 1u)
              << name(operation) << " of " << ranks << " ranks by " << name(method);
        }
      }
      EXPECT_GE(memory.messages.ll_channels * messages::least_ll_piece, 8192u);
      EXPECT_GE(memory.messages.ll128_piece() * messages::channels, 8192u);
    }
}

TEST(GroupMemoryOf, OnlyLargeOperationsTakeMoreAndTheFormulaSaysHowMuch) {
  EXPECT_EQ(group_bytes_apart(8, mib), 0u);
  EXPECT_EQ(group_bytes_apart(12, 100 * mib), 0u);
  for (int ranks = 2; ranks <= 8; ++ranks) {
    EXPECT_GT(group_bytes_apart(ranks, mib + 1), 190 * mib);
    EXPECT_LT(group_bytes_apart(ranks, 1000 * mib), 240 * mib);
  }
}

// The memory that this library has set aside on the rank's GPU, if the test has no array there.
Bytes set_aside(Group& group, int gpu_index) { return group.platform()->allocated_memory(gpu_index); }

// The sum of ones, on the GPU and on a stream of its own.
void sum_ones(Group& group, int gpu_index, Bytes bytes, Stream& stream) {
  const Place place = gpu(gpu_index);
  const Memory on_gpu = group.platform()->allocate(place, bytes, Allocation::gpu);
  const Memory pinned = group.platform()->allocate(host(0), bytes, Allocation::pinned);
  const Region there = on_gpu.region().slice(0, bytes), here = pinned.region().slice(0, bytes);
  auto* const values = reinterpret_cast<std::int32_t*>(here.data);
  std::fill_n(values, bytes / 4, 1);
  stream.copy(there, here);
  stream.synchronize(Deadline::in(memory_patience));
  const Elements all(there, DataType::int32);
  group.all_reduce(all, all, ReduceOp::sum, Mode::on(stream));
  stream.copy(here, there);
  if (stream.capturing())
    stream.synchronize(Deadline::in(memory_patience));
  else
    group.synchronize(stream);
  for (std::size_t i = 0; i < bytes / 4; ++i)
    require_that(values[i] == group.size(), "the sum of " + std::to_string(bytes) + " bytes");
}

void sums_of_all_sizes(Group& group, int gpu_index) {
  const auto stream = group.platform()->open_stream(gpu(gpu_index));
  for (const Bytes bytes : {Bytes{8}, Bytes{8192}, Bytes{100000}, mib}) sum_ones(group, gpu_index, bytes, *stream);
}

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

// A stream that reports a capture, but runs all enqueued work.
class SaysCapturing : public Stream {
 public:
  explicit SaysCapturing(std::unique_ptr<Stream> real) : real_(std::move(real)) {}
  Place place() const override { return real_->place(); }
  void copy(Region destination, ConstRegion source) override { real_->copy(destination, source); }
  const std::byte* reach(ConstRegion region) const override { return real_->reach(region); }
  void launch(const Kernel& kernel) override { real_->launch(kernel); }
  void write_value(Region flag, std::uint64_t value) override { real_->write_value(flag, value); }
  void wait_value(ConstRegion flag, std::uint64_t at_least) override { real_->wait_value(flag, at_least); }
  void call(std::function<void()> function) override { real_->call(std::move(function)); }
  void record(Event& event) override { real_->record(event); }
  void wait(const Event& event) override { real_->wait(event); }
  bool done() override { return real_->done(); }
  void synchronize(Deadline deadline) override { real_->synchronize(deadline); }
  bool capturing() const override { return true; }

 private:
  std::unique_ptr<Stream> real_;
};

TEST(GroupMemoryBound, MemoryGrowsAtALargeOperationAndNeverWhileItIsCaptured) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int mine = group.rank();
    const auto stream = group.platform()->open_stream(gpu(mine));
    SaysCapturing captured(group.platform()->open_stream(gpu(mine)));
    sum_ones(group, mine, 4096, *stream);
    const Bytes before = set_aside(group, mine);
    sum_ones(group, mine, 5 * mib, captured);
    require_that(set_aside(group, mine) == before, "nothing is set aside while a stream is captured");
    sum_ones(group, mine, 5 * mib, *stream);
    const Bytes after = set_aside(group, mine);
    require_that(after > before && after - before <= group_bytes_apart(2, 5 * mib), "memory for large operations");
    for (const Bytes bytes : {5 * mib, Bytes{4096}, mib, 5 * mib}) {
      sum_ones(group, mine, bytes, captured);
      sum_ones(group, mine, bytes, *stream);
    }
    require_that(set_aside(group, mine) == after, "no more than once");
    sum_ones(group, mine, 20 * mib, *stream);
    sum_ones(group, mine, 100000, *stream);
    require_that(set_aside(group, mine) - before <= group_bytes_apart(2, 20 * mib), "as the formula says");
  }),
            no_problems);
}

TEST(GroupMemoryBound, WhatIsPreparedNeedsNoMoreWhenItComes) {
  for (const int size : {1, 2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      const int mine = group.rank();
      const auto stream = group.platform()->open_stream(gpu(mine));
      SaysCapturing captured(group.platform()->open_stream(gpu(mine)));
      group.prepare(gpu(mine), mib);
      require_that(set_aside(group, mine) <= ReceiveArena::limit, "small operations need no more");
      sum_ones(group, mine, 4096, captured);
      group.prepare(gpu(mine), 5 * mib);
      const Bytes before = set_aside(group, mine);
      require_that((before > ReceiveArena::limit) == (group.size() > 1), "memory for large operations");
      for (const Bytes bytes : {5 * mib, Bytes{4096}}) sum_ones(group, mine, bytes, captured);
      sum_ones(group, mine, 5 * mib, *stream);
      group.prepare(gpu(mine), 4 * mib);
      require_that(set_aside(group, mine) == before, "it was there");
    }),
              no_problems);
  }
}

TEST(GroupMemoryBound, RanksThatCutAnOperationUnlikeAreToldSo) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.timeout = memory_patience;
  const auto problems = ranks.in_processes([](Group& group) {
    SaysCapturing captured(group.platform()->open_stream(gpu_of_rank(group)));
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    sum_ones(group, group.rank(), 4096, *stream);
    const Memory memory = group.platform()->allocate(gpu_of_rank(group), 5 * mib, Allocation::gpu);
    const Elements all(memory.region().slice(0, 5 * mib), DataType::int32);
    group.all_reduce(all, all, ReduceOp::sum, Mode::on(group.rank() == 0 ? captured : *stream));
    group.synchronize(group.rank() == 0 ? captured : *stream);
  });
  ASSERT_EQ(problems.size(), 2u);
  const std::string both = problems[0] + problems[1];
  EXPECT_NE(both.find("all_reduce #2 of 1310720 int32, sum as a whole"), std::string::npos) << both;
  EXPECT_NE(both.find("all_reduce #2 of 1310720 int32, sum in pieces of less than "), std::string::npos) << both;
}

TEST(GroupMemoryBound, AGroupThatCannotUseItGivesItBackAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.no_peer_access = {{"", "a wall"}, {"", ""}};
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    std::deque<Group> groups;
    for (int i = 0; i < 30; ++i) {
      groups.push_back(std::move(*group.split(0)));
      sum_ones(groups.back(), group.rank(), 4096, *stream);
      require_that(groups.back().why_staged().find("a wall") != std::string::npos, groups.back().why_staged());
    }
    require_that(set_aside(group, group.rank()) < ReceiveArena::limit, "as for one group");
  }),
            no_problems);
}

TEST(GroupMemoryBound, WithoutMemoryLargeOperationsGoInPieces) {
  for (const Bytes memory : {60 * mib, 140 * mib}) {
    TestRanks ranks(2);
    std::vector<TestRanks::Process> processes;
    for (int rank = 0; rank < 2; ++rank)
      processes.push_back(ranks.start(rank, [&](int self) {
        JoinOptions options = ranks.options(self);
        VirtualMachine machine;
        machine.gpus = 2;
        if (self == 1) machine.memory = memory;  // the other one has much
        options.platform = open_virtual_platform(machine);
        Group group = Group::join(options);
        const auto stream = group.platform()->open_stream(gpu(self));
        for (const Bytes bytes : {4096 + 0 * mib, 3 * mib, 10 * mib}) sum_ones(group, self, bytes, *stream);
        require_that(group.why_staged().empty(), group.why_staged());
        require_that(set_aside(group, self) <= memory, "what has been given back by all");
      }));
    for (const auto& process : processes) EXPECT_EQ(TestRanks::wait(process), "");
  }
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
