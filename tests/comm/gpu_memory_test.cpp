// Messages and collectives of groups on the memory of virtual GPUs.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/gpu_array.hpp"
#include "tests/comm/plans_of_paths.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

TEST(GpuMemory, MessagesBetweenGpusAndHosts) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    for (const std::size_t count : {0, 1, 5000}) {
      GpuArray mine(*platform, group.rank(), count), theirs(*platform, group.rank(), count);
      mine.fill(static_cast<float>(10 * group.rank()));
      const int other = 1 - group.rank();
      group.sendrecv(mine.elements(), other, theirs.elements(), other);
      require_that(theirs.holds(static_cast<float>(10 * other)), "what the other GPU sent");
      std::vector<float> on_host(count);
      if (group.rank() == 0) group.send(mine.elements(), 1);
      if (group.rank() == 1) group.recv(std::span(on_host), 0);
      if (group.rank() == 1 && count > 1) require_that(on_host[1] == 1, "what came to the host");
    }
  }),
            no_problems);
}

// Long messages find their own way: by the plan's path, or in pieces where an array is on the host or out of reach.
void exchange_long_ones(Group& group, int gpu_index) {
  const auto platform = group.platform();
  constexpr std::size_t count = 700001;  // three pieces
  const int other = 1 - group.rank();
  GpuArray mine(*platform, gpu_index, count), theirs(*platform, gpu_index, count);
  mine.fill(static_cast<float>(group.rank()));
  for (int i = 0; i < 2; ++i) {
    group.sendrecv(mine.elements().slice(1, count - 1), other, theirs.elements().slice(0, count - 1), other);
    require_that(theirs.elements_hold(count - 1, static_cast<float>(other + 1)), "what the other GPU sent");
  }
  std::vector<float> on_host(count);
  Future taking = group.recv(std::span(on_host), other, 5, Mode::begin);
  group.send(mine.elements(), other, 5);
  taking.wait();
  require_that(on_host[count - 1] == static_cast<float>(other) + static_cast<float>(count - 1),
               "what came to the host");
  Future arriving = group.recv(theirs.elements(), other, 6, Mode::begin);
  group.send(std::span<const float>(on_host), other, 6);
  arriving.wait();
  require_that(theirs.holds(static_cast<float>(group.rank())), "what came back from the host");
}

TEST(GpuMemory, LongMessages) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_long_ones(group, group.rank()); }), no_problems);
  ranks.virtual_gpus = 1;
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_long_ones(group, 0); }), no_problems);
}

TEST(GpuMemory, LongMessagesFollowThePlan) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int) { return plan_that_stages("whole"); };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    exchange_long_ones(group, group.rank());
    require_that(group.why_staged(1 - group.rank()).find("on its host") != std::string::npos, "the last one's reason");
  }),
            no_problems);
}

TEST(GpuMemory, LongMessagesOutOfGpusLockNoHostMemory) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    constexpr std::size_t count = 1 << 20;  // 4 MiB
    const HostPool& pool = session_of(group).gpus().connections().pool();
    GpuArray array(*group.platform(), group.rank(), count);
    std::vector<float> on_host(count);
    const auto kept_after = [&](bool out_of_gpu) {
      array.fill(static_cast<float>(group.rank()));
      if (group.rank() == 1) group.recv(array.elements(), 0);
      if (group.rank() == 0 && out_of_gpu) group.send(array.elements(), 1);
      if (group.rank() == 0 && !out_of_gpu) group.send(std::span<const float>(on_host), 1);
      return pool.kept();
    };
    const Bytes unused = kept_after(true), first = kept_after(false), second = kept_after(false);
    require_that(unused == 0, "nothing for a message out of a GPU");
    require_that(first == 0, "the first one out of a host lands in ordinary memory");
    require_that(group.rank() == 0 || second == count * sizeof(float), "the next one out of a host");
    kept_after(true);
    kept_after(true);
    require_that(array.holds(0.F), "the last message");
  }),
            no_problems);
}

// Faults: gpus P
TEST(GpuMemory, LongMessagesOfTwoSizesAreAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    GpuArray mine(*group.platform(), group.rank(), 5000);
    mine.fill(0);
    if (group.rank() == 0) group.send(mine.elements(), 1);
    if (group.rank() == 1) group.recv(mine.elements().slice(0, 4000), 0);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("receives 16000 bytes"), std::string::npos) << problems[0];
}

TEST(GpuMemory, CollectivesInPlaceAndNot) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    constexpr std::size_t count = 3000;
    GpuArray mine(*platform, group.rank(), count), out(*platform, group.rank(), count);
    mine.fill(static_cast<float>(group.rank()));
    out.fill(-1);
    group.all_reduce(mine.elements(), out.elements(), ReduceOp::max);
    require_that(out.holds(1), "the largest");
    group.all_reduce(mine.elements(), mine.elements(), ReduceOp::min);
    require_that(mine.holds(0), "the least, in place");
    out.fill(static_cast<float>(group.rank() + 7));
    group.broadcast(out.elements(), 1);
    require_that(out.holds(8), "what was broadcast");
    out.fill(3);
    group.gather(mine.elements().slice(0, count / 2), out.elements(), 0);
    if (group.rank() == 1) require_that(out.holds(3), "an output that is none of this rank's is left alone");
  }),
            no_problems);
}

TEST(GpuMemory, CallsOnStreamsComeBehindTheirWork) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const auto platform = group.platform();
    constexpr std::size_t count = 3000;
    GpuArray mine(*platform, group.rank(), count), copy(*platform, group.rank(), count);
    const auto stream = platform->open_stream(gpu(group.rank()));
    mine.fill(static_cast<float>(group.rank()));
    stream->copy(copy.elements().region, mine.elements().region);
    group.all_reduce(copy.elements(), copy.elements(), ReduceOp::max, Mode::on(*stream));
    group.synchronize(*stream);
    require_that(copy.holds(1), "the largest of what the stream had copied");
    const int other = 1 - group.rank();
    group.sendrecv(mine.elements(), other, copy.elements(), other, 0, Mode::on(*stream));
    group.barrier(Mode::on(*stream));
    group.synchronize(*stream);
    require_that(copy.holds(static_cast<float>(other)), "what the other sent");
  }),
            no_problems);
}

TEST(GpuMemory, RanksWithDifferentPlansDoNotFormAGroup) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int rank) { return plan_that_stages(rank == 0 ? "pageable" : "whole"); };
  const auto problems = ranks.in_processes([](Group&) {});
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems) EXPECT_NE(problem.find("follows plan "), std::string::npos) << problem;
}

TEST(GpuMemory, NeedsAPlatform) {
  const auto problems = TestRanks(1).in_threads([](Group& group) {
    std::byte never_touched{};
    group.send(ConstElements(ConstRegion{&never_touched, 1, gpu(0)}, DataType::uint8), 0);
  });
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("joined without a platform"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace waywiser
