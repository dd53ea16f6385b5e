#include <gtest/gtest.h>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/sim/collective_run.hpp"

namespace waywiser::sim {
namespace {

// 16 places below a tree tapered 4:1, eight NICs a node: four nodes below a leaf of 32 ports with eight cables up.
ClusterSpec tapered(std::vector<int> places) {
  ClusterSpec spec = cluster(16);
  spec.network.taper = 4;
  spec.network.radix = 40;
  spec.places = std::move(places);
  return spec;
}

CollectiveTrial trial_of(const std::string& algorithm, Bytes bytes = 64 << 20) {
  CollectiveTrial trial = all_reduce(algorithm, bytes);
  trial.direct = DirectRdma::on;
  return trial;
}

Seconds beside(const NodeModel& node, const std::string& algorithm, std::vector<int> places, int others) {
  CollectiveTrial other = trial_of("nccl_ring");
  other.nodes = others;
  CollectiveTrial trial = trial_of(algorithm);
  trial.beside = std::make_shared<const CollectiveTrial>(other);
  return simulate(node, tapered(std::move(places)), trial).seconds;
}

TEST(Jobs, APlaceChangesNothingBelowOneSwitch) {
  const NodeModel node = node_of("dgx-h100");
  for (const char* algorithm : {"ring", "nccl_ring", "nccl_tree", "nccl_nvls_tree"}) {
    ClusterSpec apart = cluster(16, "switch"), together = cluster(4, "switch");
    apart.places = {3, 9, 1, 15};
    const Seconds expected = simulate(node, together, trial_of(algorithm)).seconds;
    EXPECT_DOUBLE_EQ(simulate(node, apart, trial_of(algorithm)).seconds, expected) << algorithm;
  }
}

TEST(Jobs, NeighboursAreFasterThanNodesApart) {
  const NodeModel node = node_of("dgx-h100");
  const Seconds near = simulate(node, tapered({0, 1, 2, 3}), trial_of("nccl_ring")).seconds;
  const Seconds apart = simulate(node, tapered({0, 4, 1, 5}), trial_of("nccl_ring")).seconds;
  EXPECT_LT(1.2 * near, apart);
}

TEST(Jobs, JobsOnLeavesOfTheirOwnDoNotMeet) {
  const NodeModel node = node_of("dgx-h100");
  for (const char* algorithm : {"ring", "nccl_ring", "nccl_tree", "nccl_nvls_tree"})
    EXPECT_DOUBLE_EQ(beside(node, algorithm, {0, 1, 2, 3, 4, 5, 6, 7}, 4),
                     simulate(node, tapered({0, 1, 2, 3}), trial_of(algorithm)).seconds)
        << algorithm;
}

// Both go up from every leaf.
TEST(Jobs, JobsThatShareLeavesShareTheirLinks) {
  const NodeModel node = node_of("dgx-h100");
  for (const char* algorithm : {"nccl_ring", "nccl_tree", "nccl_nvls_tree"}) {
    const Seconds alone = simulate(node, tapered({0, 8, 4, 12}), trial_of(algorithm)).seconds;
    const Seconds shared = beside(node, algorithm, {0, 8, 4, 12, 1, 9, 5, 13}, 4);
    EXPECT_GT(shared, (algorithm == std::string("nccl_ring") ? 1.2 : 1.02) * alone) << algorithm;
    EXPECT_LT(shared, 3 * alone) << algorithm;
  }
}

TEST(Jobs, WrongPlacesAndJobsAreRefused) {
  const NodeModel node = node_of("dgx-h100");
  for (const std::vector<int>& places : {std::vector<int>{0, 0}, {0, 16}, {-1, 0}})
    EXPECT_THROW(simulate(node, tapered(places), trial_of("nccl_ring")), Error);
  EXPECT_THROW(beside(node, "nccl_ring", {0, 1}, 2), Error);
  EXPECT_THROW(beside(node, "nccl_ring", {0, 1}, 0), Error);
}

// Two types that are one: as if there were one.
TEST(Jobs, TypesThatAreAlikeAreOneType) {
  const NodeModel node = node_of("dgx-a100"), same = node_of("dgx-a100");
  ClusterSpec mixed = cluster(4);
  mixed.others = {&same};
  mixed.types = {0, 1, 1, 0};
  for (const char* algorithm : {"ring", "hierarchical", "nccl_ring", "nccl_tree"})
    EXPECT_DOUBLE_EQ(simulate(node, mixed, trial_of(algorithm)).seconds,
                     simulate(node, cluster(4), trial_of(algorithm)).seconds)
        << algorithm;
}

// Eight NICs of 400 Gb/s beside eight of 200: the slower type decides, but for what it takes to start.
TEST(Jobs, AMixIsAsFastAsItsSlowerHalf) {
  const NodeModel fast = node_of("dgx-h100"), slow = node_of("dgx-a100");
  ClusterSpec mixed = cluster(4);
  mixed.others = {&slow};
  mixed.types = {0, 0, 1, 1};
  for (const char* algorithm : {"ring", "hierarchical", "nccl_ring", "nccl_tree"}) {
    const Seconds both = simulate(fast, mixed, trial_of(algorithm)).seconds;
    EXPECT_GE(both, 0.99 * simulate(fast, cluster(4), trial_of(algorithm)).seconds) << algorithm;
    EXPECT_NEAR(both, simulate(slow, cluster(4), trial_of(algorithm)).seconds, 0.1 * both) << algorithm;
  }
}

// NCCL takes as many channels as the node with the fewest NICs gives: hse-e has two for its four GPUs.
TEST(Jobs, UnequalNicsTakeTheFewerChannels) {
  const NodeModel many = node_of("dgx-a100"), few = node_of("hse-e");
  ClusterSpec mixed = cluster(4);
  mixed.others = {&few};
  mixed.types = {0, 1, 0, 1};
  CollectiveTrial trial = trial_of("nccl_ring", Bytes{1} << 28);
  trial.order = {"gpu0", "gpu1", "gpu2", "gpu3"};
  const Seconds both = simulate(many, mixed, trial).seconds;
  EXPECT_GT(both, 1.5 * simulate(many, cluster(4), trial).seconds);
  EXPECT_NEAR(both, simulate(few, cluster(4), trial).seconds, 0.15 * both);
}

TEST(Jobs, UnequalNumbersOfGpusAreRefused) {
  const NodeModel many = node_of("dgx-a100"), few = node_of("hse-a");
  ClusterSpec mixed = cluster(2);
  mixed.others = {&few};
  mixed.types = {0, 1};
  EXPECT_THROW(simulate(many, mixed, trial_of("nccl_ring")), Error);
}

}  // namespace
}  // namespace waywiser::sim
