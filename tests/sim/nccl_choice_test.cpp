#include "waywiser/sim/nccl_choice.hpp"

#include <gtest/gtest.h>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_protocols.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes kib = 1024, mib = 1024 * kib;

// What no other way beats, as NCCL reckons, and the time of which is its own.
TEST(NcclChoice, IsTheFastestThatNcclReckons) {
  for (const char* name : {"dgx-1v", "dgx-a100", "dgx-h100", "hse-a"}) {
    const NodeModel node = node_of(name);
    for (const int nodes : {1, 2, 4})
      for (const Bytes bytes : {Bytes{8}, 256 * kib, 256 * mib}) {
        const Ran ran = simulate(node, cluster(nodes), all_reduce("nccl", bytes));
        CollectiveTrial same = all_reduce(ran.algorithm, bytes);
        same.protocol = ran.protocol;
        EXPECT_EQ(simulate(node, cluster(nodes), same).seconds, ran.seconds) << name << nodes << " " << bytes;
        int possible = 0;
        for (const NcclTried& one : ran.tried) {
          if (!one.why_not.empty()) continue;
          EXPECT_LE(ran.seconds - ran.unreckoned, one.reckoned) << name << " " << one.algorithm << one.protocol;
          ++possible;
        }
        EXPECT_GE(possible, bytes < mib || nodes > 1 ? 2 : 1) << name << nodes;  // rings are slower than NVLS for sure
      }
  }
}

// What was not run because its rate is too low would have been slower.
TEST(NcclChoice, LeavesOutNothingThatIsFaster) {
  const NodeModel node = node_of("dgx-a100");
  for (const int nodes : {1, 2, 3}) {
    const Ran ran = simulate(node, cluster(nodes), all_reduce("nccl", 256 * mib));
    for (const NcclTried& one : ran.tried) {
      if (one.protocol != "LL") continue;
      EXPECT_NE(one.why_not, "");
      CollectiveTrial slow = all_reduce(one.algorithm, 256 * mib);
      slow.protocol = "LL";
      EXPECT_GT(simulate(node, cluster(nodes), slow).seconds, ran.seconds);
    }
  }
}

// Rings of many ranks are left out unseen for small messages; a run of each says that it is right.
TEST(NcclChoice, LeavesOutRingsOfManyRanks) {
  const NodeModel node = node_of("dgx-a100");
  const Ran ran = simulate(node, cluster(32), all_reduce("nccl", 8));
  int left_out = 0;
  for (const NcclTried& one : ran.tried) {
    if (one.algorithm != "nccl_ring" || one.why_not.empty()) continue;
    CollectiveTrial ring = all_reduce("nccl_ring", 8);
    ring.protocol = one.protocol;
    EXPECT_GT(simulate(node, cluster(32), ring).seconds, ran.seconds) << one.protocol;
    ++left_out;
  }
  EXPECT_GE(left_out, 2);
}

TEST(NcclChoice, SmallMessagesTakeFlagsLargeOnesRates) {
  const NodeModel node = node_of("dgx-a100");
  EXPECT_EQ(simulate(node, cluster(2), all_reduce("nccl", 8)).protocol, "LL");
  EXPECT_EQ(simulate(node, cluster(2), all_reduce("nccl", Bytes{1} << 30)).protocol, "Simple");
}

// Flags take a part of the rate: of a ring by LL128 a twelfth; LL has a limit of its own, here below half of the rate.
TEST(NcclChoice, ProtocolsHaveTheirSharesOfTheRate) {
  const NodeModel node = node_of("dgx-1v");  // where no other limit is in the way
  CollectiveTrial trial = all_reduce("nccl_ring", 512 * mib);
  const Seconds simple = simulate(node, cluster(1), trial).seconds;
  trial.protocol = "LL128";
  EXPECT_NEAR(simulate(node, cluster(1), trial).seconds, simple / 0.92, 0.02 * simple);
  trial.protocol = "LL";
  const Seconds limit = 2.0 * 7 / 8 * static_cast<double>(trial.bytes) / node.costs()["nccl.ll_rate"];
  EXPECT_GT(limit, 2 * simple);
  EXPECT_NEAR(simulate(node, cluster(1), trial).seconds, limit, 0.02 * limit);
  trial.protocol = "LL64";
  EXPECT_THROW(simulate(node, cluster(1), trial), Error);
}

TEST(NcclChoice, Ll128NeedsNvlinksAndNearNics) {
  CollectiveTrial trial = all_reduce("nccl_ring", mib);
  trial.protocol = "LL128";
  const NodeModel far = node_of("hse-a");  // NICs at the root complex
  EXPECT_GT(simulate(far, cluster(1), trial).seconds, 0);
  EXPECT_THROW(simulate(far, cluster(2), trial), Error);
  EXPECT_GT(simulate(node_of("dgx-a100"), cluster(2), trial).seconds, 0);
}

TEST(NcclChoice, IsNvlsWhereNvswitchesAdd) {
  const NodeModel adds = node_of("dgx-h100");
  EXPECT_EQ(simulate(adds, cluster(1), all_reduce("nccl", Bytes{1} << 32)).algorithm, "nccl_nvls");
  EXPECT_EQ(simulate(adds, cluster(2), all_reduce("nccl", Bytes{1} << 32)).algorithm, "nccl_nvls_tree");
}

// A message by LL128 or Simple takes longer than one by LL: within a node by what NCCL reckons for NVLinks.
TEST(NcclChoice, ProtocolsHaveTheirLatencies) {
  const NodeModel node = node_of("dgx-a100");
  CollectiveTrial trial = all_reduce("nccl_ring", 8);
  std::vector<Seconds> times;
  for (const char* protocol : {"LL", "LL128", "Simple"}) {
    trial.protocol = protocol;
    times.push_back(simulate(node, cluster(1), trial).seconds);
  }
  const Costs& costs = node.costs();
  const Seconds ll128 = costs["nccl.ll128_ring_start"] - costs["nccl.ll_start"];
  const Seconds simple = costs["nccl.simple_ring_start"] - costs["nccl.ll_start"];
  EXPECT_NEAR(times[1] - times[0], costs["nccl.ll128_base"] + 14 * ll128, 1e-9);
  EXPECT_NEAR(times[2] - times[0], costs["nccl.simple_base"] + 14 * simple, 1e-9);
  trial.algorithm = "nccl_tree";
  trial.protocol = "LL";
  const Seconds ll = simulate(node, cluster(2), trial).seconds;
  trial.protocol = "Simple";
  EXPECT_GT(simulate(node, cluster(2), trial).seconds, ll + 2 * costs["nccl.simple_tree_network"]);
}

// Two steps between two GPUs at an NVSwitch: NCCL's latency of a step has the links' in it.
TEST(NcclChoice, AStepTakesWhatNcclReckons) {
  const NodeModel node = node_of("dgx-a100");
  CollectiveTrial trial = all_reduce("nccl_ring", 8);
  trial.order = {"gpu0", "gpu1"};
  trial.protocol = "LL";
  const Costs& costs = node.costs();
  const Seconds launch = costs["kernel.issue"] + costs["kernel.finish"];
  EXPECT_NEAR(simulate(node, cluster(1), trial).seconds - launch, 2 * costs["nccl.ll_start"], 1e-8);
}

// A base that was measured changes the time, not what NCCL takes: that its own table decides.
TEST(NcclChoice, MeasuredBasesDoNotDecide) {
  const Topology machine = package_machine("dgx-a100");
  Costs costs = costs_of(machine);
  const Ran before = simulate(NodeModel(machine, costs), cluster(1), all_reduce("nccl", 64 * mib));
  ASSERT_EQ(before.protocol, "Simple");
  apply(costs, {{"nccl.simple_base", costs["nccl.simple_base"] + 1e-3}}, "--set");
  const Ran slow = simulate(NodeModel(machine, costs), cluster(1), all_reduce("nccl", 64 * mib));
  EXPECT_EQ(slow.protocol, "Simple");
  EXPECT_NEAR(slow.seconds, before.seconds + 1e-3, 1e-9);
  apply(costs, {{"nccl.simple_reckoned_base", 1e-3}}, "--set");
  EXPECT_NE(simulate(NodeModel(machine, costs), cluster(1), all_reduce("nccl", 64 * mib)).protocol, "Simple");
}

TEST(NcclChoice, CollNetNeedsANetworkThatAdds) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec adds = cluster(4);
  EXPECT_THROW(simulate(node, adds, all_reduce("nccl_collnet", mib)), Error);
  adds.in_network_reduction = true;
  EXPECT_GT(simulate(node, adds, all_reduce("nccl_collnet", mib)).seconds, 0);
}

// Groups of one GPU a node, each with a NIC of its own, take the time of one of them.
TEST(NcclChoice, GroupsWithNicsOfTheirOwnDoNotDisturbEachOther) {
  const NodeModel node = node_of("dgx-a100");
  CollectiveTrial trial = all_reduce("nccl_ring", 64 * mib);
  trial.groups = {{"gpu0"}};
  const Seconds alone = simulate(node, cluster(4), trial).seconds;
  for (int gpu = 1; gpu < 8; ++gpu) trial.groups.push_back({"gpu" + std::to_string(gpu)});
  EXPECT_NEAR(simulate(node, cluster(4), trial).seconds, alone, 0.01 * alone);
}

// Two groups that share a NIC take twice as long.
TEST(NcclChoice, GroupsShareNics) {
  const NodeModel node = node_of("hse-e");  // eight GPUs, two NICs
  CollectiveTrial trial = all_reduce("nccl_ring", 64 * mib);
  trial.groups = {{"gpu0"}};
  const Seconds alone = simulate(node, cluster(2), trial).seconds;
  for (int gpu = 1; gpu < 8; ++gpu) trial.groups.push_back({"gpu" + std::to_string(gpu)});
  EXPECT_NEAR(simulate(node, cluster(2), trial).seconds, 4 * alone, 0.1 * alone);
  trial.groups.back() = {"gpu6", "gpu7"};
  EXPECT_THROW(simulate(node, cluster(2), trial), Error);
}

}  // namespace
}  // namespace waywiser::sim
