// Every operation on streams where no kernel serves all ranks: two machines of virtual GPUs, and the progress thread
// between them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/gpu_numbers.hpp"
#include "tests/group/machines_of_gpus.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/kernel_domain.hpp"

namespace waywiser {
namespace {

// All collectives, verified by the stream alone: nothing of the group is called between an operation and its result.
void every_collective(Group& group, std::size_t count, Stream& stream) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const int me = group.rank();
  const Mode mode = Mode::on(stream);
  const auto sum_at = [&](std::size_t i) {
    int sum = 0;
    for (int rank = 0; rank < group.size(); ++rank) sum += value_of(rank, i);
    return sum;
  };
  GpuNumbers one(group, count, of_rank(me)), other(group, count);
  GpuNumbers all(group, count * ranks, of_rank(me)), blocks(group, count * ranks);
  group.all_reduce(one.elements(), other.elements(), ReduceOp::sum, mode);
  other.expect(stream, sum_at, "all_reduce");
  group.all_reduce(one.elements(), other.elements(), ReduceOp::avg, mode);
  other.expect(stream, [&](std::size_t i) { return sum_at(i) / group.size(); }, "average");
  group.all_gather(one.elements(), blocks.elements(), mode);
  blocks.expect(stream, [&](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); }, "all_gather");
  group.reduce_scatter(all.elements(), other.elements(), ReduceOp::sum, mode);
  other.expect(
      stream, [&](std::size_t i) { return sum_at(static_cast<std::size_t>(me) * count + i); }, "reduce_scatter");
  group.all_to_all(all.elements(), blocks.elements(), mode);
  blocks.expect(
      stream,
      [&](std::size_t i) {
        return value_of(static_cast<int>(i / count), static_cast<std::size_t>(me) * count + i % count);
      },
      "all_to_all");
  for (const int root : {0, group.size() - 1}) {
    GpuNumbers sent(group, count, of_rank(me));
    group.broadcast(sent.elements(), root, mode);
    sent.expect(stream, of_rank(root), "broadcast");
    group.reduce(one.elements(), other.elements(), ReduceOp::max, root, mode);
    if (me == root) other.expect(stream, of_rank(group.size() - 1), "reduce");
    group.gather(one.elements(), blocks.elements(), root, mode);
    if (me == root)
      blocks.expect(stream, [&](std::size_t i) { return value_of(static_cast<int>(i / count), i % count); }, "gather");
    group.scatter(all.elements(), other.elements(), root, mode);
    other.expect(
        stream, [&](std::size_t i) { return value_of(root, static_cast<std::size_t>(me) * count + i); }, "scatter");
  }
  one.set(of_rank(me));
  group.all_reduce(one.elements(), one.elements(), ReduceOp::sum, mode);
  one.expect(stream, sum_at, "all_reduce in place");
  group.barrier(mode);
}

// Along a ring of all ranks: by kernels within a machine, by the hosts between machines.
void every_message(Group& group, std::size_t count, Stream& stream) {
  const int me = group.rank(), ranks = group.size(), above = (me + 1) % ranks, below = (me + ranks - 1) % ranks;
  const Mode mode = Mode::on(stream);
  GpuNumbers mine(group, count, of_rank(me)), from_below(group, count), from_above(group, count), itself(group, count);
  group.sendrecv(mine.elements(), above, from_below.elements(), below, 0, mode);
  from_below.expect(stream, of_rank(below), "sendrecv");
  if (me % 2 == 0 && above % 2 == 1) group.send(mine.elements(), above, 0, mode);
  if (me % 2 == 1) group.recv(from_above.elements(), below, 0, mode);
  if (me % 2 == 1) from_above.expect(stream, of_rank(below), "send and recv");
  const Exchange exchanges[] = {{above, mine.elements(), from_above.elements(), 1, 2},
                                {below, mine.elements(), from_below.elements(), 2, 1},
                                {me, mine.elements(), itself.elements(), 3, 3}};
  group.neighbor_exchange(exchanges, mode);
  from_above.expect(stream, of_rank(above), "neighbor_exchange from above");
  from_below.expect(stream, of_rank(below), "neighbor_exchange from below");
  itself.expect(stream, of_rank(me), "neighbor_exchange with itself");
}

void every_operation(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  group.barrier(Mode::on(*stream));
  for (const std::size_t count : {1ul, 700ul, 9001ul, 70000ul}) {
    every_collective(group, count, *stream);
    every_message(group, count, *stream);
  }
  group.synchronize(*stream);
}

TEST(ProxyOnStreams, EveryOperationOfTwoMachinesWithTwoGpusEach) {
  EXPECT_EQ(MachinesOfGpus(2, 2).in_processes(every_operation), no_problems);
}

TEST(ProxyOnStreams, EveryOperationOfRanksThatAreAllOnMachinesOfTheirOwn) {
  EXPECT_EQ(MachinesOfGpus(3, 1).in_processes(every_operation), no_problems);
}

// MachinesOfGpus of 7 and 5 ranks: parts of two sizes.
TEST(ProxyOnStreams, TwelveRanksOnTwoMachines) {
  TestRanks ranks(12);
  ranks.virtual_gpus = 7;
  ranks.machines_apart = true;
  ranks.ranks_of_machine = 7;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_collective(group, 6000, *stream);
    every_message(group, 500, *stream);
    group.synchronize(*stream);
  }),
            no_problems);
}

// More ranks on one machine than one kernel serves: two parts of 5.
TEST(ProxyOnStreams, TenRanksOnOneMachine) {
  TestRanks ranks(10);
  ranks.virtual_gpus = 10;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_collective(group, 300, *stream);
    every_message(group, 300, *stream);
    group.synchronize(*stream);
  }),
            no_problems);
}

// GPUs 0 and 2 do not reach each other: the other pairs go by kernels.
TEST(ProxyOnStreams, EachPairOfAMachineTakesTheKernelThatItCan) {
  if (tests_use_cuda()) GTEST_SKIP() << "only virtual GPUs can lack access to each other as the test wants";
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  const std::string why = "no NVLink between them";
  ranks.no_peer_access = {{"", "", why}, {"", "", ""}, {why, "", ""}};
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    every_operation(group);
    require_that(!group.why_staged().empty(), "a reason why not all is by kernels");
    GpuNumbers mine(group, 100, of_rank(group.rank())), came(group, 100);
    const int me = group.rank();
    const auto message = [&](int from, int to) {
      if (me == from) group.send(mine.elements(), to, 0, Mode::on(*stream));
      if (me == to) group.recv(came.elements(), from, 0, Mode::on(*stream));
    };
    const auto graph = stream->capture([&] { message(0, 1); });
    graph->launch(*stream);
    if (me == 1) came.expect(*stream, of_rank(0), "a message in a graph");
    std::string refusal = "nothing";
    try {
      stream->capture([&] { message(0, 2); });
      refusal = "no refusal";
    } catch (const Error& error) {
      refusal = error.what();
    }
    if (me != 1) require_that(refusal.find("which no graph can capture: rank") != std::string::npos, refusal);
    group.synchronize(*stream);
  }),
            no_problems);
}

TEST(KernelDomains, ArePartsOfMachinesOfUpTo8Ranks) {
  using Parts = std::vector<std::vector<int>>;
  EXPECT_EQ(kernel_domains({0, 0, 0}), (Parts{{0, 1, 2}}));
  EXPECT_EQ(kernel_domains({0, 1, 0, 1}), (Parts{{0, 2}, {1, 3}}));
  const Parts of_one = kernel_domains(std::vector<int>(12, 0));
  EXPECT_EQ(of_one, (Parts{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}}));
  const Parts odd = kernel_domains({0, 0, 0, 0, 0, 0, 0, 0, 0, 9});
  EXPECT_EQ(odd, (Parts{{0, 1, 2, 3}, {4, 5, 6, 7, 8}, {9}}));
}

}  // namespace
}  // namespace waywiser
