// Calls of GPU arrays without a stream of the program: they run in a stream of the group, complete or only begun.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/gpu_integers.hpp"

namespace waywiser {
namespace {

// Counts the bytes of host memory that are allocated for copies.
class HostBytesCounted : public Different {
 public:
  using Different::Different;
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    if (!place.is_gpu() && allocation != Allocation::pageable) host_bytes += bytes;
    return real().allocate(place, bytes, allocation);
  }
  std::atomic<Bytes> host_bytes{0};
};

void begin_and_require(Group& group, std::size_t count) {
  const int ranks = group.size(), me = group.rank();
  const auto blocks = count * static_cast<std::size_t>(ranks);
  GpuIntegers one(group, count, me), sum(group, count, 0), all(group, blocks, 0), mine(group, blocks, me),
      exchanged(group, blocks, 0), part(group, count, 0), rooted(group, count, 0), told(group, count, me);
  Future futures[] = {
      group.all_reduce(one.elements(), sum.elements(), ReduceOp::sum, Mode::begin),
      group.all_gather(one.elements(), all.elements(), Mode::begin),
      group.reduce_scatter(mine.elements(), part.elements(), ReduceOp::sum, Mode::begin),
      group.all_to_all(mine.elements(), exchanged.elements(), Mode::begin),
      group.reduce(one.elements(), rooted.elements(), ReduceOp::sum, ranks - 1, Mode::begin),
      group.broadcast(told.elements(), ranks - 1, Mode::begin),
  };
  for (Future& each : futures) each.wait();
  require_that(sum.get() == sum_of_ranks(ranks, count), "all_reduce");
  require_that(part.get() == sum_of_ranks(ranks, count, me * static_cast<std::int32_t>(count)), "reduce_scatter");
  if (me == ranks - 1) require_that(rooted.get() == sum_of_ranks(ranks, count), "reduce");
  Integers root(count), gathered, taken;
  std::iota(root.begin(), root.end(), ranks - 1);
  require_that(told.get() == root, "broadcast");
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      gathered.push_back(rank + static_cast<std::int32_t>(i));
      taken.push_back(rank + me * static_cast<std::int32_t>(count) + static_cast<std::int32_t>(i));
    }
  require_that(all.get() == gathered, "all_gather");
  require_that(exchanged.get() == taken, "all_to_all");
}

TEST(BegunOnGpus, EveryCollectiveWithAndWithoutThreads) {
  for (const int size : {1, 2, 3})
    for (const bool threads : {false, true}) {
      TestRanks ranks(size);
      ranks.virtual_gpus = size;
      ranks.threads = threads;
      EXPECT_EQ(ranks.in_processes([](Group& group) {
        for (const std::size_t count : {1, 700, 20001}) begin_and_require(group, count);
        require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
      }),
                no_problems)
          << size << " ranks, threads " << threads;
    }
}

// Arrays that are longer than all that a group keeps in host memory otherwise.
TEST(BegunOnGpus, NothingGoesThroughHostMemory) {
  VirtualMachine machine;
  machine.gpus = 2;
  EXPECT_EQ(on_platforms(
                2, [&](int) { return std::make_unique<HostBytesCounted>(machine); },
                [](Group& group) {
                  constexpr std::size_t count = 200000;
                  GpuIntegers one(group, count, group.rank()), sum(group, count, 0), both(group, 2 * count, 0);
                  const std::vector<std::size_t> counts{count, count};
                  auto& platform = dynamic_cast<HostBytesCounted&>(*group.platform());
                  group.all_reduce(one.elements(), sum.elements());
                  const Bytes before = platform.host_bytes;
                  group.all_reduce(one.elements(), sum.elements(), ReduceOp::sum, Mode::begin).wait();
                  group.all_gather_v(one.elements(), both.elements(), counts, Mode::begin).wait();
                  group.all_gather_v(one.elements(), both.elements(), counts);
                  group.all_to_all_v(both.elements(), counts, GpuIntegers(group, 2 * count, 0).elements(), counts);
                  const Bytes own = 2 * count * 4 + 4;  // of the array that is made in between
                  const Bytes used = platform.host_bytes - before - own;
                  require_that(used < count, std::to_string(used) + " bytes of host memory at most");
                }),
            no_problems);
}

// The reason is told; so is a rank whose arrays are on the host, where the others' are on GPUs.
TEST(BegunOnGpus, WhereNoKernelServesACallItGoesThroughTheHostAndSaysWhy) {
  if (tests_use_cuda()) GTEST_SKIP() << "only virtual GPUs can lack access to each other as the test wants";
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    begin_and_require(group, 700);
    require_that(group.why_staged().find("a wall") != std::string::npos, group.why_staged());
  }),
            no_problems);
}

TEST(BegunOnGpus, ManyAtOnceWaitedForInAnyOrderAndMixedWithOtherCalls) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    std::vector<GpuIntegers> given, sums;
    std::vector<Future> futures;
    for (int i = 0; i < 12; ++i) {
      const std::size_t count = 10 + 500 * static_cast<std::size_t>(i);
      given.emplace_back(group, count, group.rank() + i);
      sums.emplace_back(group, count, 0);
      const ConstElements in = given.back().elements();
      const Elements out = sums.back().elements();
      if (i % 4 == 3)
        group.all_reduce(in, out, ReduceOp::sum, Mode::on(*stream));
      else if (i % 4 == 1)
        group.all_reduce(in, out);
      else
        futures.push_back(group.all_reduce(in, out, ReduceOp::sum, Mode::begin));
    }
    std::ranges::rotate(futures, futures.begin() + group.rank());
    for (Future& each : futures) each.wait();
    group.synchronize(*stream);
    for (int i = 0; i < 12; ++i) {
      const std::size_t count = 10 + 500 * static_cast<std::size_t>(i);
      require_that(sums[static_cast<std::size_t>(i)].get() == sum_of_ranks(3, count, i), "sum " + std::to_string(i));
    }
  }),
            no_problems);
}

// Ranks begin the calls of two groups in different orders.
TEST(BegunOnGpus, GroupsDoNotWaitForEachOther) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    auto other = group.split(0);
    GpuIntegers a(group, 3000, group.rank()), b(group, 3000, group.rank() + 5);
    group.prepare(gpu_of_rank(group), 1);
    other->prepare(gpu_of_rank(group), 1);
    for (int turn = 0; turn < 5; ++turn) {
      GpuIntegers first(group, 3000, 0), second(group, 3000, 0);
      Future futures[2];
      for (const int which : {group.rank(), 1 - group.rank()})
        futures[which] = which == 0 ? group.all_reduce(a.elements(), first.elements(), ReduceOp::sum, Mode::begin)
                                    : other->all_reduce(b.elements(), second.elements(), ReduceOp::sum, Mode::begin);
      for (const int which : {1 - group.rank(), group.rank()}) futures[which].wait();
      require_that(first.get() == sum_of_ranks(2, 3000), "the sum of one group");
      require_that(second.get() == sum_of_ranks(2, 3000, 5), "the sum of the other group");
    }
  }),
            no_problems);
}

TEST(BegunOnGpus, ADroppedFutureThatKeepsItsArraysGoesOn) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    GpuIntegers in(group, 5000, group.rank());
    auto out = std::make_shared<GpuIntegers>(group, 5000, 0);
    const std::weak_ptr<GpuIntegers> kept = out;
    group.prepare(gpu_of_rank(group), 1);
    {
      Future sum = group.all_reduce(in.elements(), out->elements(), ReduceOp::sum, Mode::begin);
      sum.keep(out);
    }
    GpuIntegers copy(group, 5000, 0);
    group.all_reduce(in.elements(), copy.elements());  // comes after it
    require_that(out->get() == sum_of_ranks(2, 5000) && copy.get() == sum_of_ranks(2, 5000), "both sums");
    out.reset();
    for (int turn = 0; turn < 1000 && !kept.expired(); ++turn) static_cast<void>(group.probe(1 - group.rank(), 1, 0));
    require_that(kept.expired(), "that the array is let go of");
  }),
            no_problems);
}

// The first call on GPUs of each rank is another one: a message, a call that begins, and a barrier that is enqueued.
TEST(BegunOnGpus, AMessageOnAStreamNeedsNoCollectiveBeforeIt) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    GpuIntegers in(group, 3000, group.rank()), out(group, 3000, 0), sum(group, 3000, 0);
    if (group.rank() == 0) group.send(in.elements(), 1, 0, Mode::on(*stream));
    if (group.rank() == 1) group.recv(out.elements(), 0, 0, Mode::on(*stream));
    Future begun = group.all_reduce(in.elements(), sum.elements(), ReduceOp::sum, Mode::begin);
    group.barrier(Mode::on(*stream));
    begun.wait();
    group.synchronize(*stream);
    if (group.rank() == 1) require_that(out.get() == GpuIntegers(group, 3000, 0).get(), "the message");
    require_that(sum.get() == sum_of_ranks(3, 3000), "the sum");
    std::int64_t mine = group.rank(), ranks_added = 0;
    group.all_reduce(std::span(&mine, 1), std::span(&ranks_added, 1));
    require_that(ranks_added == 3, "the ranks are in step");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
