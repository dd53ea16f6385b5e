#include "waywiser/sim/nccl_channels.hpp"

#include <gtest/gtest.h>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

// A ring for each NIC: the bus bandwidth is that of all ports together, or within a node what NCCL reckons with for
// A100.
TEST(NcclChannels, RingsUseEveryNic) {
  const NodeModel node = node_of("dgx-a100");
  constexpr double bytes = Bytes{1} << 33;
  for (const auto& [nodes, limit] : {std::pair{1, 235e9}, {2, 8 * 24.25e9}, {4, 8 * 24.25e9}}) {
    const Ran ran = simulate(node, cluster(nodes, "rail-optimised"), all_reduce("nccl_ring", Bytes{1} << 33));
    const double ranks = 8 * nodes, bus = 2 * (ranks - 1) / ranks * bytes / ran.seconds;
    EXPECT_LE(bus, limit) << nodes;
    EXPECT_GE(bus, 0.95 * limit) << nodes;
    EXPECT_DOUBLE_EQ(ran.bytes, 2.0 * (ranks - 1) * bytes) << nodes;
  }
}

// Two cards beside each GPU carry twice as much as one, until the NVLinks are the limit.
TEST(NcclChannels, RingsUseMoreNicsThanGpus) {
  Topology twice = package_machine("dgx-a100");
  const auto is_nic = [](const std::string& id) { return id.starts_with("nic"); };
  const std::vector<Link> links = twice.links;
  for (const std::string& nic : twice.ids("nic")) {
    Device more = twice.at(nic);
    more.id += "b";
    twice.devices.push_back(more);
    for (Link link : links) {
      if (!is_nic(link.a) && !is_nic(link.b)) continue;
      if (link.a != nic && link.b != nic) continue;
      (link.a == nic ? link.a : link.b) += "b";
      twice.links.push_back(link);
    }
  }
  const CollectiveTrial trial = all_reduce("nccl_ring", Bytes{1} << 32);
  ClusterSpec slow = cluster(2, "switch");
  slow.network.port_rate = 12.5e9;
  const Seconds one = simulate(node_of("dgx-a100"), slow, trial).seconds;
  EXPECT_NEAR(simulate({twice, costs_of(twice)}, slow, trial).seconds, one / 2, 0.05 * one);
}

// Half of the elements go up and down each tree, over n - 1 pairs of ranks.
TEST(NcclChannels, TreesMoveEveryByteUpAndDown) {
  for (const char* name : {"dgx-a100", "hse-e", "dgx-1v"}) {
    const NodeModel node = node_of(name);
    for (const int nodes : {1, 2, 3, 5}) {
      const CollectiveTrial trial = all_reduce("nccl_tree", (Bytes{1} << 20) + 4);
      const Ran ran = simulate(node, cluster(nodes, "switch"), trial);
      EXPECT_DOUBLE_EQ(ran.bytes, 2.0 * (8 * nodes - 1) * static_cast<double>(trial.bytes)) << name << nodes;
    }
  }
}

TEST(NcclChannels, AddingOverlapsTheTransfer) {
  const NodeModel node = node_of("dgx-a100");
  const Seconds apart = simulate(node, cluster(1), all_reduce("ring", Bytes{1} << 30)).seconds;
  EXPECT_LT(1.2 * simulate(node, cluster(1), all_reduce("nccl_ring", Bytes{1} << 30)).seconds, apart);
}

TEST(NcclChannels, CutRoundsGiveTheTimeOfAllRounds) {
  const NodeModel node = node_of("hse-a");
  CollectiveTrial trial = all_reduce("nccl_ring", 64 << 20);
  const Ran cut = simulate(node, cluster(65), trial);
  trial.most_rounds = 0;
  const Ran all = simulate(node, cluster(65), trial);
  EXPECT_LT(cut.rounds_run, 80u);
  EXPECT_EQ(all.rounds_run, all.rounds);
  EXPECT_NEAR(cut.seconds, all.seconds, 0.01 * all.seconds);
}

double bus(const NodeModel& node, const CollectiveTrial& trial) {
  return 2.0 * 7 / 8 * static_cast<double>(trial.bytes) / simulate(node, cluster(1), trial).seconds;
}

// A DGX-1 has two cycles over pairs with two NVLinks and one over the others, each in both directions. In one ring,
// neighbours should have two NVLinks; as numbered, gpu3 and gpu4 have none.
TEST(NcclChannels, RingsFollowTheMeshOfNvlinks) {
  const NodeModel node = node_of("dgx-1v");
  CollectiveTrial trial = all_reduce("nccl_ring", 512 << 20);
  EXPECT_LE(bus(node, trial), 6 * 24.2e9);
  EXPECT_GE(bus(node, trial), 0.9 * 6 * 24.2e9);
  trial.order = {"gpu0", "gpu3", "gpu2", "gpu1", "gpu5", "gpu6", "gpu7", "gpu4"};
  EXPECT_LE(bus(node, trial), 2 * 24.2e9);
  EXPECT_GE(bus(node, trial), 0.9 * 2 * 24.2e9);
  trial.order = {"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"};
  EXPECT_LE(bus(node, trial), 13.1e9);
}

// Between nodes the ring of each NIC is the fastest cycle, begun beside it.
TEST(NcclChannels, RingsBetweenNodesNeedNoOrder) {
  const NodeModel node = node_of("dgx-1v");
  CollectiveTrial trial = all_reduce("nccl_ring", 256 << 20);
  const Seconds found = simulate(node, cluster(2), trial).seconds;
  trial.order = {"gpu0", "gpu3", "gpu2", "gpu1", "gpu5", "gpu6", "gpu7", "gpu4"};
  EXPECT_NEAR(simulate(node, cluster(2), trial).seconds, found, 0.01 * found);
}

TEST(NcclChannels, SayWhatTheyDoNotServe) {
  const NodeModel node = node_of("hse-a");
  CollectiveTrial trial = all_reduce("nccl_tree", 1 << 20);
  trial.ranks = 6;  // of 8
  EXPECT_THROW(simulate(node, cluster(2), trial), Error);
  trial.ranks = 3;  // of one node
  EXPECT_GT(simulate(node, cluster(2), trial).seconds, 0);
  trial.operation = Collective::all_gather;
  EXPECT_THROW(simulate(node, cluster(2), trial), Error);
  trial.algorithm = "nccl_ring";
  EXPECT_GT(simulate(node, cluster(2), trial).seconds, 0);
}

// The channels' multiprocessors take the last block out of their buffers and send nothing meanwhile.
TEST(NcclChannels, ARingEndsOnceItsLastBlockIsKept) {
  const Topology machine = package_machine("dgx-h100");
  Costs costs = costs_of(machine);
  for (const Collective operation : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    CollectiveTrial trial = all_reduce("nccl_ring", Bytes{256} << 20);
    trial.operation = operation;
    trial.order = {"gpu0", "gpu1"};
    apply(costs, {{"nccl.channels", 8}}, "--set");
    const Seconds slow = simulate(NodeModel(machine, costs), cluster(1), trial).seconds;
    apply(costs, {{"nccl.channels", 16}}, "--set");
    const Seconds fast = simulate(NodeModel(machine, costs), cluster(1), trial).seconds;
    const double accesses = operation == Collective::reduce_scatter ? 1.5 : 1;
    const Seconds half = accesses * static_cast<double>(trial.bytes) / 2 / (16 * costs["sm.block_rate"]);
    EXPECT_NEAR(slow - fast, half, 1e-3 * half);
  }
}

}  // namespace
}  // namespace waywiser::sim
