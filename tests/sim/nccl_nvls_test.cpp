#include "waywiser/sim/nccl_nvls.hpp"

#include <gtest/gtest.h>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_protocols.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes gib = Bytes{1} << 30;

// Each direction of a GPU's NVLinks carries 1 + 1 / n of the bytes, where a ring carries 2 (n - 1) / n.
TEST(NcclNvls, NeedsAnNvswitchThatAdds) {
  const CollectiveTrial trial = all_reduce("nccl_nvls", 4 * gib);
  const NodeModel adds = node_of("dgx-h100");
  const double links = nccl_nvlink_rate(adds) * adds.costs()["nccl.nvls_share"];
  EXPECT_NEAR(links, 18 * 20.6e9 * 0.85, 1);
  const double seconds = static_cast<double>(trial.bytes) * (1 + 1.0 / 8) / links;
  EXPECT_NEAR(simulate(adds, cluster(1), trial).seconds, seconds, 0.01 * seconds);
  EXPECT_THROW(simulate(adds, cluster(2), trial), Error);
  EXPECT_THROW(simulate(node_of("dgx-a100"), cluster(1), trial), Error);
}

// With fewer GPUs a larger share of the NVLinks is for the head's own part.
TEST(NcclNvls, OfFewerGpusIsSlower) {
  const NodeModel adds = node_of("dgx-h100");
  CollectiveTrial trial = all_reduce("nccl_nvls", 4 * gib);
  const Seconds of_eight = simulate(adds, cluster(1), trial).seconds;
  trial.order = {"gpu0", "gpu1", "gpu2", "gpu3"};
  EXPECT_NEAR(simulate(adds, cluster(1), trial).seconds, of_eight * (1 + 1.0 / 4) / (1 + 1.0 / 8), 0.01 * of_eight);
}

// Over two nodes a rail carries twice the half of an eighth of the bytes, each way; what NCCL reckons for it is less
// than its card. One node more, and NCCL reckons less.
TEST(NcclNvls, TreesGoOverAllRails) {
  const NodeModel adds = node_of("dgx-h100");
  const CollectiveTrial trial = all_reduce("nccl_nvls_tree", 16 * gib);
  const auto bus = [&](int nodes) {
    const double n = 8.0 * nodes;
    return 2 * (n - 1) / n * static_cast<double>(trial.bytes) / simulate(adds, cluster(nodes), trial).seconds;
  };
  EXPECT_NEAR(bus(2), 8 * 57.7e9, 0.02 * 8 * 57.7e9);
  EXPECT_NEAR(bus(3), 8 * 45.5e9, 0.05 * 8 * 45.5e9);
  EXPECT_THROW(simulate(adds, cluster(1), trial), Error);
  EXPECT_THROW(simulate(node_of("dgx-a100"), cluster(2), trial), Error);
  CollectiveTrial gather = trial;
  gather.operation = Collective::all_gather;
  EXPECT_THROW(simulate(adds, cluster(2), gather), Error);
}

// A slower card is the limit: each carries an eighth of the bytes both ways.
TEST(NcclNvls, TreesWaitForTheSlowestCard) {
  const NodeModel adds = node_of("dgx-h100");
  ClusterSpec slow = cluster(2);
  slow.network.port_rate = 12.5e9;
  const CollectiveTrial trial = all_reduce("nccl_nvls_tree", 4 * gib);
  const double least = static_cast<double>(trial.bytes) / 8 / 12.5e9;
  const Seconds seconds = simulate(adds, slow, trial).seconds;
  EXPECT_GT(seconds, least);
  EXPECT_LT(seconds, 1.1 * least);
}

// A second job takes its share of the cards.
TEST(NcclNvls, TreesFeelASecondJob) {
  const NodeModel adds = node_of("dgx-h100");
  CollectiveTrial trial = all_reduce("nccl_nvls_tree", gib);
  const Seconds alone = simulate(adds, cluster(4), trial).seconds;
  trial.job_bytes = 4 * gib;
  EXPECT_GT(simulate(adds, cluster(4), trial).seconds, 1.2 * alone);
}

}  // namespace
}  // namespace waywiser::sim
