#include "waywiser/sim/schedule_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser::sim {
namespace {

Step step(StepKind kind, std::uint32_t round, int peer) {
  return {kind, round, peer, {Area::output, 0, 8}, {Area::input, 0, 8}};
}

TEST(ScheduleRun, AMessageTakesItsRoad) {
  const NodeModel node = node_of("hse-e");
  World world(node, cluster(2, "switch"));
  const RankRoutes routes(world, {DirectRdma::on});
  const TimedRoute route = routes.route(0, 8);
  const auto make = [](int rank) {
    Schedule schedule{"by hand", rank, 16, 8, 8, 0, {}};
    if (rank == 0) schedule.steps = {step(StepKind::send, 0, 8)};
    if (rank == 8) schedule.steps = {step(StepKind::receive, 0, 0)};
    return schedule;
  };
  const Ran ran = ScheduleRun(world, routes, 16, make, {}).run();
  EXPECT_EQ(ran.messages, 1u);
  EXPECT_DOUBLE_EQ(ran.seconds, route.latency + 32 / routes.slowest(route));
}

bool same(const TimedRoute& a, const TimedRoute& b) {
  return a.latency == b.latency && std::ranges::equal(a.uses, b.uses, [](const Use& one, const Use& other) {
           return one.link == other.link && one.weight == other.weight;
         });
}

// On hse-e two GPUs share a switch with each NIC, the others are farther than PXB; on hse-a all are.
TEST(ScheduleRun, NearIsOnWhereGpuAndNicShareASwitch) {
  for (const auto& [name, near_gpus] : {std::pair{"hse-e", 4}, {"hse-a", 0}, {"dgx-a100", 8}}) {
    const NodeModel node = node_of(name);
    World world(node, cluster(2, "switch"));
    const RankRoutes off(world, {DirectRdma::off}), on(world, {DirectRdma::on}), near(world, {DirectRdma::near});
    int direct = 0;
    for (int rank = 0; rank < near.ranks_of_node(); ++rank) {
      ASSERT_FALSE(same(on.to_nic(rank), off.to_nic(rank))) << name;
      const bool one = same(near.to_nic(rank), on.to_nic(rank));
      direct += one ? 1 : 0;
      EXPECT_TRUE(same(near.to_nic(rank), (one ? on : off).to_nic(rank))) << name;
      EXPECT_TRUE(same(near.from_nic(rank), (one ? on : off).from_nic(rank))) << name;
    }
    EXPECT_EQ(direct, near_gpus) << name;
  }
}

TEST(ScheduleRun, WriteReadsFromHostMemory) {
  const NodeModel node = node_of("hse-a");
  World world(node, cluster(2, "switch"));
  const RankRoutes off(world, {DirectRdma::off}), on(world, {DirectRdma::on}), write(world, {DirectRdma::write});
  EXPECT_TRUE(same(write.to_nic(0), off.to_nic(0)));
  EXPECT_TRUE(same(write.from_nic(0), on.from_nic(0)));
}

// As a program does that gives host memory to MPI: the GPUs have NVLinks, which it does not use.
TEST(ScheduleRun, ThroughHostMemoryTakesLongerThanNvlink) {
  const NodeModel node = node_of("dgx-a100");
  World world(node, cluster(1, "switch"));
  const RankRoutes best(world, {}), host(world, {DirectRdma::off, false, PeerCopies::host});
  EXPECT_LT(host.slowest(host.route(0, 1)), best.slowest(best.route(0, 1)));
  EXPECT_GT(host.route(0, 1).latency, best.route(0, 1).latency);
}

TEST(ScheduleRun, SaysThatAScheduleNeverEnds) {
  const NodeModel node = node_of("hse-e");
  World world(node, cluster(2, "switch"));
  const RankRoutes routes(world, {DirectRdma::on});
  const auto make = [](int rank) {
    Schedule schedule{"by hand", rank, 2, 8, 8, 0, {}};
    if (rank == 1) schedule.steps = {step(StepKind::receive, 0, 0)};
    return schedule;
  };
  EXPECT_THROW(ScheduleRun(world, routes, 2, make, {}).run(), Error);
}

// Every row of the table of algorithms runs unchanged, moves what its cost formula says at most, and takes longer for
// more bytes.
TEST(ScheduleRun, RunsEveryAlgorithm) {
  const NodeModel node = node_of("hse-a");
  for (const CollectiveAlgorithm& algorithm : algorithms()) {
    CollectiveTrial trial = all_reduce(std::string(algorithm.name), 1 << 12);
    trial.operation = algorithm.operation;
    try {
      const Ran small = simulate(node, cluster(4), trial);
      trial.bytes = 1 << 22;
      const Ran large = simulate(node, cluster(4), trial);
      EXPECT_GT(small.seconds, 0) << algorithm.name;
      EXPECT_GE(large.seconds, small.seconds) << algorithm.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unavailable) << error.what();
    }
  }
}

// Each of n ranks sends and gets 2 (n - 1) / n of the buffer, through its port or less.
TEST(ScheduleRun, ARingIsNotFasterThanItsPort) {
  const NodeModel node = node_of("dgx-a100");
  constexpr Bytes bytes = 64 << 20;
  for (const char* network : {"switch", "fat-tree", "rail-optimised"}) {
    const Ran ran = simulate(node, cluster(8, network), all_reduce("ring", bytes));
    EXPECT_GE(ran.seconds, 2.0 * 63 / 64 * static_cast<double>(bytes) / 25e9) << network;
    EXPECT_DOUBLE_EQ(ran.bytes, 2.0 * 63 * static_cast<double>(bytes)) << network;
  }
}

TEST(ScheduleRun, CutRoundsGiveTheTimeOfAllRounds) {
  const NodeModel node = node_of("hse-e");
  CollectiveTrial trial = all_reduce("ring", 64 << 20);
  const Ran cut = simulate(node, cluster(40), trial);
  trial.most_rounds = 0;
  const Ran all = simulate(node, cluster(40), trial);
  EXPECT_LT(cut.rounds_run, 200u);
  EXPECT_EQ(all.rounds_run, all.rounds);
  EXPECT_EQ(cut.rounds, all.rounds);
  EXPECT_NEAR(cut.seconds, all.seconds, 0.005 * all.seconds);
}

TEST(ScheduleRun, TreesWinForSmallRingsForLargeSwitchesForAll) {
  const NodeModel node = node_of("hse-e");
  ClusterSpec spec = cluster(16);
  spec.in_network_reduction = true;
  const auto seconds = [&](const std::string& algorithm, Bytes bytes) {
    return simulate(node, spec, all_reduce(algorithm, bytes)).seconds;
  };
  EXPECT_LT(seconds("double_tree", 1 << 10), seconds("ring", 1 << 10));
  EXPECT_LT(seconds("ring", Bytes{1} << 30), seconds("double_tree", Bytes{1} << 30));
  EXPECT_LT(seconds("in_network", 1 << 20), seconds("double_tree", 1 << 20));
}

TEST(ScheduleRun, FailedAndSlowLinksAndAnotherJobCostTime) {
  const NodeModel node = node_of("hse-e");
  const CollectiveTrial trial = all_reduce("ring", 64 << 20);
  const Seconds well = simulate(node, cluster(32), trial).seconds;
  ClusterSpec slow = cluster(32);
  for (std::size_t i = 0; i < 18; ++i) slow.network.sick.push_back({i, 0.1});
  EXPECT_GT(simulate(node, slow, trial).seconds, 1.5 * well);
  ClusterSpec failed = cluster(32);
  failed.network.sick = {{0, 0}};
  EXPECT_GE(simulate(node, failed, trial).seconds, well);
  CollectiveTrial beside = trial;
  beside.job_bytes = 256 << 20;
  EXPECT_GT(simulate(node, cluster(32), beside).seconds, 1.1 * well);
}

// The second job goes on for seconds; the collective is over long before.
TEST(ScheduleRun, TheTimeIsNotThatOfAnotherJob) {
  const NodeModel node = node_of("hse-e");
  CollectiveTrial trial = all_reduce("double_tree", 1 << 10);
  const Seconds alone = simulate(node, cluster(4), trial).seconds;
  trial.job_bytes = Bytes{1} << 35;
  const Seconds beside = simulate(node, cluster(4), trial).seconds;
  EXPECT_GE(beside, alone);
  EXPECT_LT(beside, 2 * alone);
}

// 96 nodes of four GPUs: the four schedules of the first node stand for all, with 64 of 190 rounds between nodes.
TEST(ScheduleRun, OneNodeStandsForAllInAHierarchicalReduction) {
  const NodeModel node = node_of("hse-e");
  CollectiveTrial trial = all_reduce("hierarchical", 64 << 20);
  const Ran cut = simulate(node, cluster(96), trial);
  trial.most_rounds = 0;
  const Ran whole = simulate(node, cluster(96), trial);
  EXPECT_LT(cut.rounds_run, whole.rounds_run);
  EXPECT_EQ(cut.rounds, whole.rounds);
  EXPECT_NEAR(cut.seconds, whole.seconds, 0.01 * whole.seconds);
}

// All four GPUs of a node send beside the ring, from its first byte to its last; cut rounds stay as they are.
TEST(ScheduleRun, AnEndlessJobSharesThePortsThroughout) {
  const NodeModel node = node_of("hse-e");
  CollectiveTrial trial = all_reduce("ring", Bytes{4} << 30);
  const Seconds alone = simulate(node, cluster(8), trial).seconds;
  trial.endless_job = true;
  const Ran beside = simulate(node, cluster(8), trial);
  EXPECT_GT(beside.seconds, 1.5 * alone);
  EXPECT_LT(beside.seconds, 6 * alone);
  trial.bytes *= 2;
  EXPECT_NEAR(simulate(node, cluster(8), trial).seconds, 2 * beside.seconds, 0.1 * beside.seconds);
  trial.algorithm = "nccl_ring";
  EXPECT_GT(simulate(node, cluster(8), trial).seconds, alone);
}

// Seven eighths of the bytes cross a GPU's NVLinks to be added, and seven eighths of the sum come back.
TEST(ScheduleRun, ReductionInTheNetworkIsNotFasterThanTheNvlinksOfANode) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec spec = cluster(4, "rail-optimised");
  spec.in_network_reduction = true;
  constexpr Bytes bytes = Bytes{1} << 30;
  const Seconds seconds = simulate(node, spec, all_reduce("in_network", bytes)).seconds;
  EXPECT_GE(seconds, 2.0 * 7 / 8 * static_cast<double>(bytes) / 282.36e9);
}

// The trees of the rails spread over the spines: a cable carries as many of them as there are rails for each spine. The
// NVLinks of a node are the other limit.
TEST(ScheduleRun, ReductionInTheNetworkFollowsItsFormulaAtEveryTaper) {
  constexpr double bytes = Bytes{1} << 30, port = 24.25e9, rails = 8;
  for (const auto& [machine, nodes] : {std::pair{"dgx-a100", 16}, {"dgx-a100", 160}}) {
    const NodeModel node = node_of(machine);
    ClusterSpec spec = cluster(nodes, "fat-tree");
    spec.in_network_reduction = true;
    Seconds before = 0;
    for (const double taper : {1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 17.0, 35.0}) {
      spec.network.taper = taper;
      const Seconds seconds = simulate(node, spec, all_reduce("in_network", static_cast<Bytes>(bytes))).seconds;
      const double below = std::round(36 * taper / (1 + taper)),
                   spines = std::min(36 - below, std::round(below / taper));
      const double trees = std::ceil(rails / std::max(1.0, spines));
      const double formula = std::max(trees * bytes / rails / port, 2.0 * 7 / 8 * bytes / 282.36e9);
      EXPECT_NEAR(seconds / formula, 1, 0.1) << nodes << " nodes, taper " << taper;
      EXPECT_GE(seconds, before * 0.999) << nodes << " nodes, taper " << taper;
      before = seconds;
    }
  }
}

// A node whose ranks are all beside one NIC sends all bytes through it.
TEST(ScheduleRun, ANodeWithOneRankSendsAllThroughItsNic) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec spec = cluster(2, "switch");
  spec.in_network_reduction = true;
  CollectiveTrial trial = all_reduce("in_network", Bytes{1} << 28);
  trial.ranks = 9;
  EXPECT_GE(simulate(node, spec, trial).seconds, static_cast<double>(trial.bytes) / 25e9);
}

// Without PXN a message to another rail crosses the upper switches, which are few here.
TEST(ScheduleRun, WithPxnMessagesStayInTheirRail) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec spec = cluster(16, "rail-optimised");
  spec.network.taper = 8;
  CollectiveTrial trial = all_reduce("direct", Bytes{1} << 28);
  trial.operation = Collective::all_to_all;
  const Seconds without = simulate(node, spec, trial).seconds;
  trial.pxn = true;
  EXPECT_LT(3 * simulate(node, spec, trial).seconds, without);
  spec.network.taper = 1;
  const Seconds wide = simulate(node, spec, trial).seconds;
  spec.network.taper = 8;
  EXPECT_DOUBLE_EQ(simulate(node, spec, trial).seconds, wide);  // no cable between switches is used
}

TEST(ScheduleRun, RanksCanHaveTheGpusInAnotherOrder) {
  const NodeModel node = node_of("dgx-1v");
  CollectiveTrial trial = all_reduce("ring", 256 << 20);
  const Seconds as_numbered = simulate(node, cluster(1), trial).seconds;  // gpu3 and gpu4 have no NVLink
  trial.order = {"gpu0", "gpu3", "gpu2", "gpu1", "gpu5", "gpu6", "gpu7", "gpu4"};
  EXPECT_LT(3 * simulate(node, cluster(1), trial).seconds, as_numbered);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"gpu8"}, {"gpu0", "gpu0", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"}}) {
    trial.order = wrong;
    EXPECT_THROW(simulate(node, cluster(1), trial), Error);
  }
}

TEST(ScheduleRun, SomeGpusOfANodeCanBeWithoutRanks) {
  const NodeModel node = node_of("dgx-a100");
  CollectiveTrial trial = all_reduce("ring", 64 << 20);
  trial.order = {"gpu1", "gpu5"};
  const Ran ran = simulate(node, cluster(3), trial);
  EXPECT_DOUBLE_EQ(ran.bytes, 2.0 * 5 * static_cast<double>(trial.bytes));
  trial.ranks = 7;
  EXPECT_THROW(simulate(node, cluster(3), trial), Error);
}

TEST(ScheduleRun, AnNvlinkDomainOverNodesIsFaster) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec domain = cluster(9);
  domain.nvlink_domain = 72;
  const CollectiveTrial trial = all_reduce("ring", 64 << 20);
  EXPECT_LT(3 * simulate(node, domain, trial).seconds, simulate(node, cluster(9), trial).seconds);
}

// The NVLinks of a GPU carry what it has for its own node and what it has for the others.
TEST(ScheduleRun, AnNvlinkDomainHasNoOtherNvlinksWithinItsNodes) {
  const NodeModel node = node_of("dgx-a100");
  ClusterSpec domain = cluster(2);
  domain.nvlink_domain = 16;
  CollectiveTrial trial = all_reduce("direct", Bytes{1} << 30);
  trial.operation = Collective::all_to_all;
  EXPECT_GE(simulate(node, domain, trial).seconds, 15.0 / 16 * static_cast<double>(trial.bytes) / 282.36e9);
}

}  // namespace
}  // namespace waywiser::sim
