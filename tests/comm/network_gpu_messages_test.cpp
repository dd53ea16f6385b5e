// The same of GPUs: each pair of GPUs and types of nodes gets its road.
#include <gtest/gtest.h>

#include "tests/comm/network_rows.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/network/network_paths.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr Seconds most_wait = 20;

// Pages of a GPU with a pattern, written and read through the host.
class PatternOnGpu {
 public:
  PatternOnGpu(Platform& platform, Bytes bytes, int index = 0)
      : memory_(platform.allocate(gpu(index), bytes, Allocation::gpu)),
        host_(platform.allocate(host(0), bytes, Allocation::pinned)),
        stream_(platform.open_stream(gpu(index))) {}

  void fill(int first) {
    for (Bytes i = 0; i < host_.region().bytes; ++i) host_.region().data[i] = expected(first, i);
    copy(memory_.region(), host_.region());
  }
  bool holds(int first) {
    copy(host_.region(), memory_.region());
    for (Bytes i = 0; i < host_.region().bytes; ++i)
      if (host_.region().data[i] != expected(first, i)) return false;
    return true;
  }
  static std::byte expected(int first, Bytes i) {
    return static_cast<std::byte>(first + static_cast<int>(i * 7 % 251));
  }
  Elements elements() const { return {memory_.region(), DataType::uint8}; }

 private:
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(most_wait));
  }
  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
};

// From GPU to GPU, to a host and from one.
void exchange_of_gpus(Group& group, const std::string& expected_way) {
  const int other = 1 - group.rank();
  for (const Bytes bytes : {Bytes{10000}, Bytes{300001}, Bytes{3} << 20}) {
    PatternOnGpu mine(*group.platform(), bytes), theirs(*group.platform(), bytes);
    mine.fill(group.rank());
    for (int round = 0; round < 2; ++round) {
      theirs.fill(9);
      group.sendrecv(mine.elements(), other, theirs.elements(), other);
      require_that(theirs.holds(other), "what the other GPU sent");
      const std::string why = group.why_staged(other);
      require_that(why.find(expected_way) != std::string::npos, expected_way + " in: " + why);
    }
    std::vector<std::byte> on_host(bytes);
    Future taking = group.recv(std::span(on_host), other, 5, Mode::begin);
    group.send(mine.elements(), other, 5);
    taking.wait();
    require_that(on_host.back() == PatternOnGpu::expected(other, bytes - 1), "what came to the host");
    Future arriving = group.recv(theirs.elements(), other, 6, Mode::begin);
    group.send(std::span<const std::byte>(on_host), other, 6);
    arriving.wait();
    require_that(theirs.holds(group.rank()), "what came back from the host");
  }
}

struct GpuRow {
  std::string name, mechanism;
  Parameters parameters;
  std::string expected_way;
};

std::vector<GpuRow> staged_rows() {
  return {{"pageable", "ucx_staged", {{"variant", "pageable"}}, "variant=pageable"},
          {"whole", "ucx_staged", {{"variant", "whole"}}, "variant=whole"},
          {"pipelined",
           "ucx_staged",
           {{"variant", "pipelined"}, {"chunk", "64K"}, {"depth", "2"}},
           "ucx_staged(chunk=64K,depth=2"}};
}

std::vector<GpuRow> all_rows() {
  std::vector<GpuRow> rows = staged_rows();
  rows.push_back({"read_by_ucx", "ucx", {{"gdrcopy", "off"}}, "machines, ucx("});
  return rows;
}

class StagedNetworkPaths : public testing::TestWithParam<GpuRow> {};
class AllNetworkPaths : public testing::TestWithParam<GpuRow> {};

TEST_P(StagedNetworkPaths, OfVirtualGpus) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  const GpuRow& row = GetParam();
  ranks.chooser_of = [&](int) { return plan_of_rows(with_gpu_row(row.mechanism, row.parameters)); };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_of_gpus(group, row.expected_way); }), no_problems);
}

TEST_P(AllNetworkPaths, TwoProcessesOnCudaGpus) {
  if (cuda_devices_here() == 0) GTEST_SKIP() << "needs a CUDA GPU";
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.cuda_gpus = true;
  const GpuRow& row = GetParam();
  ranks.chooser_of = [&](int) { return plan_of_rows(with_gpu_row(row.mechanism, row.parameters)); };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_of_gpus(group, row.expected_way); }), no_problems);
}

INSTANTIATE_TEST_SUITE_P(Rows, StagedNetworkPaths, testing::ValuesIn(staged_rows()),
                         [](const testing::TestParamInfo<GpuRow>& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Rows, AllNetworkPaths, testing::ValuesIn(all_rows()),
                         [](const testing::TestParamInfo<GpuRow>& row) { return row.param.name; });

// From a GPU of each rank to a GPU of every other rank. `says(sender, receiver)`: the description of the way at both.
template <typename Says>
void exchange_with_all(Group& group, int from, int to, Says says) {
  const Bytes bytes = 200001;
  for (int sender = 0; sender < group.size(); ++sender)
    for (int receiver = 0; receiver < group.size(); ++receiver) {
      if (sender == receiver || (group.rank() != sender && group.rank() != receiver)) continue;
      const bool sends = group.rank() == sender;
      PatternOnGpu data(*group.platform(), bytes, sends ? from : to);
      data.fill(sends ? sender : 99);
      sends ? group.send(data.elements(), receiver) : group.recv(data.elements(), sender);
      require_that(data.holds(sender), "what the other GPU sent");
      const std::string why = group.why_staged(sends ? receiver : sender), expected = says(sender, receiver);
      require_that(why.find(expected) != std::string::npos, expected + " in: " + why);
    }
}

TEST(NetworkPaths, EachPeerGetsTheRoadToItsTypeOfNode) {
  const std::vector<std::string> nodes{third_node, first_node, second_node, first_node};
  TestRanks ranks(4);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) { return plan_of_types(); };
  ranks.node_of = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
  const auto says = [](int sender, int receiver) -> std::string {
    if (sender == 2 || receiver == 2) return "chunk=64K";  // the pair of 0 and 2, too: 2 is the higher rank
    return sender == 0 || receiver == 0 ? "chunk=8K" : "variant=pageable";
  };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_with_all(group, 0, 0, says); }), no_problems);
}

TEST(NetworkPaths, EachGpuGetsItsOwnRoad) {
  const std::vector<std::string> nodes{first_node, second_node};
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int) { return plan_of_types(); };
  ranks.node_of = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
  // From GPU 1 to GPU 0: of those two pairs the plan has both.
  const auto says = [](int sender, int) -> std::string { return sender == 0 ? "chunk=32K" : "chunk=16K"; };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_with_all(group, 1, 0, says); }), no_problems);
}

TEST(NetworkPaths, WhatUcxCannotReachIsStaged) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) { return plan_of_rows(with_gpu_row("ucx", {{"gdrcopy", "off"}})); };
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_of_gpus(group, "two machines, and not ucx("); }),
            no_problems);
}

TEST(NetworkPaths, RailsThatAMachineLacksAreNotUsed) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) {
    return plan_of_rows(with_gpu_row("ucx_staged", {{"variant", "whole"}, {"device", "no-such-card"}}));
  };
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_of_gpus(group, "and not ucx_staged("); }), no_problems);
}

}  // namespace
}  // namespace waywiser
