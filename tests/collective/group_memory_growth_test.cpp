// When the memory of a group grows, and what goes on without.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/collective/gpu_sums.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/collective/gpu/group_memory.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/peer_memory/receive_arena.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

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

}  // namespace
}  // namespace waywiser
