#include <gtest/gtest.h>

#include "tests/sim/package_machines.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/path/enumerate.hpp"
#include "waywiser/sim/runner.hpp"
#include "waywiser/sim/simulated_meter.hpp"
#include "waywiser/topology/pair_group.hpp"

namespace waywiser::sim {
namespace {

struct Simulated {
  explicit Simulated(const std::string& name) : topology(package_machine(name)), node(topology, costs_of(topology)) {}
  Seconds time(const Path& path, Operation operation, Bytes bytes, int to_node = 0) const {
    ClusterSpec cluster;
    cluster.network.nodes = to_node + 1;
    return simulate(node, cluster,
                    {path, {0, text(path.source)}, {to_node, text(path.destination)}, operation, bytes, {}})
        .seconds;
  }
  Topology topology;
  NodeModel node;
};

Path between_nodes(const std::string& gdr, const std::string& gdrcopy) {
  return {"ucx", gpu(0), gpu(0), 1, {{"transports", "ib"}, {"gdr", gdr}, {"gdrcopy", gdrcopy}}};
}

// Every path of every class of pairs of every machine: finite, never faster than its hops, monotone in size.
void check_machine(const std::string& name) {
  const Simulated simulated(name);
  CampaignOptions options;
  SimulatedMeter meter(simulated.node, {});
  int timed = 0;
  for (const Subject& subject : simulated_subjects(simulated.topology, options))
    for (const Family& family : subject.families) {
      const Path path = expand(family).front();
      if (meter.why_unavailable(path)) continue;
      Seconds before = 0;
      for (const Bytes bytes : {Bytes{1}, Bytes{4096}, Bytes{262144}, Bytes{1 << 24}}) {
        const Seconds seconds = simulated.time(path, Operation::latency, bytes);
        const Limit limit = meter.limit(path, Operation::latency);
        ASSERT_GT(seconds, 0) << label(path);
        ASSERT_GE(seconds, before * (1 - 1e-12))
            << name << " " << pair_text(path) << " " << label(path) << " " << bytes;
        if (limit.rate > 0) {
          ASSERT_LE(static_cast<double>(bytes) / seconds, limit.rate) << label(path);
        }
        before = seconds;
      }
      ++timed;
    }
  EXPECT_GT(timed, 5) << name;
}

TEST(Models, AreMonotoneAndNeverFasterThanAHop) {
  for (const char* name : {"recorded-4xh200", "hse-a", "hse-e", "dgx-1v", "lassen"}) check_machine(name);
}

TEST(Models, SymmetricPairsTakeTheSameTime) {
  const Simulated simulated("dgx-a100");
  const Seconds first = simulated.time({"copy_engine", gpu(0), gpu(1), 1, {}}, Operation::latency, 1 << 20);
  for (int other = 2; other < 8; ++other)
    EXPECT_DOUBLE_EQ(simulated.time({"copy_engine", gpu(0), gpu(other), 1, {}}, Operation::latency, 1 << 20), first);
}

TEST(Models, ARemoteTransferIsNotFasterThanItsPort) {
  const Simulated simulated("hse-e");
  constexpr Bytes bytes = 64 << 20;
  const Seconds one = simulated.time(between_nodes("on", "on"), Operation::streaming, bytes, 1);
  EXPECT_GE(one, static_cast<double>(bytes) / 12.5e9);
}

TEST(Models, RemoteTransfersAreMonotone) {
  const Simulated simulated("hse-e");
  for (const Path& path : {between_nodes("off", "off"), between_nodes("on", "off"), between_nodes("on", "on")}) {
    Seconds before = 0;
    for (Bytes bytes = 1; bytes <= 1 << 20; bytes += bytes / 3 + 1) {
      const Seconds seconds = simulated.time(path, Operation::latency, bytes, 1);
      ASSERT_GE(seconds, before * (1 - 1e-12)) << label(path) << " " << bytes;
      before = seconds;
    }
  }
}

TEST(Models, HostCopiesAreMonotoneWhereThreadsJoin) {
  const Simulated simulated("recorded-4xh200");
  for (const char* threads : {"1", "2", "16"}) {
    const Path path{"host_copy", host(0), host(0), 1, {{"stores", "temporal"}, {"threads", threads}}};
    Seconds before = 0;
    for (Bytes bytes = 1; bytes <= 64 << 20; bytes += bytes / 5 + 1) {
      const Seconds seconds = simulated.time(path, Operation::latency, bytes);
      ASSERT_GE(seconds, before * (1 - 1e-12)) << label(path) << " " << bytes;
      before = seconds;
    }
  }
}

TEST(Models, StagedTransfersWaitForEachOther) {
  const Simulated simulated("recorded-4xh200");
  const Path path{"host_staged", gpu(0), gpu(1), 1, {{"variant", "whole"}}};
  constexpr Bytes bytes = 64 << 20;
  const Seconds alone = simulated.time(path, Operation::latency, bytes);
  EXPECT_NEAR(simulated.time(path, Operation::streaming, bytes) / alone, 1, 0.05);
}

TEST(Models, TwoProcessesTakeTurnsOnOneGpuOnly) {
  const Simulated simulated("recorded-4xh200");
  const auto time = [&](int to, int processes) {
    const Path path{"sm_copy", gpu(0), gpu(to), processes, {{"direction", "push"}, {"blocks", "8"}}};
    return simulated.time(path, Operation::latency, 64);
  };
  EXPECT_GT(time(0, 2), time(0, 1) + 5e-5);
  EXPECT_NEAR(time(1, 2), time(1, 1), 5e-6);
}

// A finding on real nodes: behind a root complex GPUDirect RDMA slows large messages, beside the NIC it helps.
TEST(Models, DirectRdmaHelpsOnlyWhereNothingLimitsIt) {
  constexpr Bytes bytes = 16 << 20;
  for (const auto& [name, helps] : {std::pair{"hse-a", false}, {"hse-c", false}, {"hse-e", true}}) {
    const Simulated simulated(name);
    const Seconds off = simulated.time(between_nodes("off", "on"), Operation::streaming, bytes, 1);
    const Seconds on = simulated.time(between_nodes("on", "on"), Operation::streaming, bytes, 1);
    EXPECT_EQ(on < off, helps) << name;
  }
}

TEST(Models, SayWhyAPathCannotBe) {
  const Simulated simulated("hse-a");
  SimulatedMeter meter(simulated.node, {});
  EXPECT_EQ(meter.why_unavailable({"host_copy", gpu(0), gpu(1), 1, {}}), "a GPU takes part");
  EXPECT_EQ(meter.why_unavailable({"telepathy", gpu(0), gpu(1), 1, {}}), "the simulator has no model of telepathy");
}

}  // namespace
}  // namespace waywiser::sim
