// Collectives of a Group on the memory of virtual GPUs, by kernels if these can, compared with the same call on the
// host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

TEST(GroupOnGpus, EveryCollectiveAndType) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      compare_all(group);
      require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    }),
              no_problems);
  }
}

// Grids are equal at all ranks, whatever each asks for: the least counts, of those that ask.
TEST(GroupOnGpus, BlocksAreLimitedAlikeAtAllRanks) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  ranks.max_ctas_of = [](int rank) { return 2 * rank; };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const Collective operation : twin_operations)
      for (const std::size_t count : {3, 5001, 300001})
        compare(group, operation, DataType::float32, ReduceOp::sum, count, nullptr);
    require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
  }),
            no_problems);
}

TEST(GroupOnGpus, ANegativeLimitIsRefused) {
  TestRanks ranks(1);
  ranks.max_ctas_of = [](int) { return -1; };
  EXPECT_EQ(ranks.in_processes([](Group&) {}), Problems{"rank 0: max_ctas is -1: a number of blocks, or 0: no limit"});
}

// CUDA is touched by the ranks' processes only: it does not survive a fork.
TEST(GroupOnGpus, TheSameOnCudaGpus) {
  const int gpus = std::min(cuda_devices_here(), 4);
  if (gpus == 0) GTEST_SKIP() << "needs a CUDA GPU";
  TestRanks ranks(std::max(gpus, 2));
  ranks.cuda_gpus = true;
  ranks.kernels_on_shared_gpu = true;
  ranks.timeout = 60;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare_all(group);
    require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    for (const std::size_t count : {3, 5001, 1500001}) exchange_on_stream(group, count, 6);
    blocks_of_all_sizes(group);
    for (const std::size_t count : {1, 300001}) exchange_with_neighbors(group, count);
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 20000000, nullptr);
    compare(group, Collective::reduce, DataType::float32, ReduceOp::avg, 20000000, nullptr);
    compare(group, Collective::all_gather, DataType::int16, ReduceOp::sum, 9000000, nullptr);
  }),
            no_problems);
}

TEST(GroupOnGpus, LargeArraysAndNoneInPlace) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const Collective operation : twin_operations)
      compare(group, operation, DataType::float32, ReduceOp::sum, 0, nullptr);
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 700000, nullptr);
    compare(group, Collective::reduce, DataType::float32, ReduceOp::sum, 700000, nullptr);
    compare(group, Collective::all_gather, DataType::int64, ReduceOp::sum, 100000, nullptr);
    Twins both(group, DataType::float64, 40000, group.rank());
    group.all_reduce(both.gpu_elements(), both.gpu_elements());
    group.all_reduce(both.host_elements(), both.host_elements());
    require_that(both.equal(), "the sum in place");
  }),
            no_problems);
}

TEST(GroupOnGpus, OneRankHasWhatItGives) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare(group, Collective::all_reduce, DataType::int32, ReduceOp::avg, 10, nullptr);
    compare(group, Collective::all_to_all, DataType::int32, ReduceOp::sum, 10, nullptr);
  }),
            no_problems);
}

TEST(GroupOnGpus, OnTwoStreamsByTurns) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto first = group.platform()->open_stream(gpu_of_rank(group));
    const auto second = group.platform()->open_stream(gpu_of_rank(group));
    Twins sum(group, DataType::int32, 1000, group.rank());
    for (int i = 0; i < 6; ++i) {
      group.all_reduce(sum.gpu_elements(), sum.gpu_elements(), ReduceOp::sum, Mode::on(i % 2 == 0 ? *first : *second));
      group.all_reduce(sum.host_elements(), sum.host_elements());
    }
    group.synchronize(*second);
    require_that(sum.equal(), "what one stream gave to the other");
  }),
            no_problems);
}

TEST(GroupOnGpus, WhatOneRankCannotAllDoByWayOfTheHost) {
  const auto machine = [](int rank) {
    VirtualMachine made;
    made.gpus = 2;
    if (rank == 1) made.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
    return made;
  };
  EXPECT_EQ(on_platforms(
                2, [&](int rank) { return open_virtual_platform(machine(rank)); },
                [](Group& group) {
                  compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 100, nullptr);
                  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
                  compare(group, Collective::all_gather, DataType::float32, ReduceOp::sum, 100, stream.get());
                  blocks_of_all_sizes(group);
                  exchange_with_neighbors(group, 5000);
                  const std::string why = group.why_staged();
                  require_that(why.find("rank 1: ") == 0 && why.find("a wall") != std::string::npos, why);
                }),
            no_problems);
}

TEST(GroupOnGpus, RanksThatShareAGpuGoByWayOfTheHost) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.kernels_on_shared_gpu = false;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Memory memory = group.platform()->allocate(gpu(0), 64, Allocation::gpu);
    const Elements all(memory.region(), DataType::uint8);
    group.broadcast(all, 0);
    require_that(group.why_staged().find("ranks 0 and 1 share GPU") == 0, group.why_staged());
  }),
            no_problems);
}

TEST(GroupOnGpus, RanksThatShareAGpuUseKernelsWhereThatIsWanted) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.kernels_on_shared_gpu = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    compare(group, Collective::all_reduce, DataType::float32, ReduceOp::sum, 5000, nullptr);
    require_that(group.why_staged().empty(), "kernels, not " + group.why_staged());
    exchange_on_stream(group, 5001, 6);
  }),
            no_problems);
}

TEST(GroupOnGpus, BlocksOfAllSizesGoAsMessages) {
  for (const int size : {1, 2, 4}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      blocks_of_all_sizes(group);
      for (const std::size_t count : {1, 70001}) exchange_with_neighbors(group, count);
    }),
              no_problems)
        << size << " ranks";
  }
}

}  // namespace
}  // namespace waywiser
