// Nodes of several types in one cluster, and the routes between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/sim/package_machines.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/sim/simulated_meter.hpp"
#include "waywiser/sim/timing.hpp"

namespace waywiser::sim {
namespace {

NodeModel model_of_machine(const std::string& name) {
  const Topology topology = package_machine(name);
  return {topology, costs_of(topology)};
}

ClusterSpec nodes_of(std::vector<int> types, std::vector<const NodeModel*> others) {
  ClusterSpec spec;
  spec.network.nodes = static_cast<int>(types.size());
  spec.types = std::move(types);
  spec.others = std::move(others);
  return spec;
}

Path to_other(const std::string& device, const std::string& gdr) {
  return {"ucx", gpu(0), gpu(0), 2, {{"transports", "rc"}, {"device", device}, {"gdr", gdr}, {"gdrcopy", "on"}}};
}

Seconds time_of(const NodeModel& node, const ClusterSpec& cluster, const Path& path, Bytes bytes,
                Operation operation = Operation::latency) {
  return simulate(node, cluster, {path, {0, "gpu0"}, {1, "gpu0"}, operation, bytes, {}}).seconds;
}

TEST(MixedCluster, TwoTypesThatAreOneTimeAsOne) {
  const NodeModel node = model_of_machine("hse-a"), same = model_of_machine("hse-a");
  const Path path = to_other("mlx5_0:1", "on");
  for (const Bytes bytes : {Bytes{8}, Bytes{8} << 10, Bytes{1} << 20})
    EXPECT_DOUBLE_EQ(time_of(node, nodes_of({0, 1}, {&same}), path, bytes),
                     time_of(node, nodes_of({0, 0}, {}), path, bytes));
}

// A Xeon's root complex lets a NIC read GPU memory slowly; behind a switch it does not take part.
TEST(MixedCluster, EachEndHasItsOwnHardware) {
  const NodeModel slow = model_of_machine("hse-a"), fast = model_of_machine("hse-e");
  const Path path = to_other("mlx5_0:1", "on");
  const Bytes bytes = Bytes{64} << 20;
  const Seconds out_of_slow = time_of(slow, nodes_of({0, 1}, {&fast}), path, bytes);
  const Seconds out_of_fast = time_of(fast, nodes_of({0, 1}, {&slow}), path, bytes);
  EXPECT_NEAR(static_cast<double>(bytes) / out_of_slow, 3.67e9, 0.05e9);
  EXPECT_GT(static_cast<double>(bytes) / out_of_fast, 2 * 3.67e9);
  EXPECT_LT(out_of_fast, out_of_slow);
}

TEST(MixedCluster, BothWaysTakeTheSameNicsBack) {
  const NodeModel node = model_of_machine("hse-c");  // gpu0 is beside the first NIC, far from the second
  const ClusterSpec two = nodes_of({0, 0}, {});
  const Seconds out = time_of(node, two, to_other("mlx5_0:1/mlx5_1:1", "on"), 1 << 20);
  const Seconds both = time_of(node, two, to_other("mlx5_0:1/mlx5_1:1", "on"), 1 << 20, Operation::bidirectional);
  EXPECT_GT(both, 0.5 * out);
  EXPECT_GT(time_of(node, two, to_other("mlx5_1:1", "on"), 1 << 20),
            time_of(node, two, to_other("mlx5_0:1", "on"), 1 << 20));
}

TEST(MixedCluster, ATypeThatIsNotThereIsRefused) {
  const NodeModel node = model_of_machine("hse-a");
  EXPECT_THROW(World(node, nodes_of({0, 1}, {})), Error);
}

// Whatever number of NICs the two types have.
TEST(MixedCluster, EveryTwoTypesReachEachOther) {
  constexpr Bytes bytes = Bytes{64} << 20;
  const Path path{"ucx", gpu(0), gpu(0), 2, {{"transports", "rc"}, {"gdr", "off"}, {"gdrcopy", "on"}, {"nics", "2"}}};
  std::vector<std::unique_ptr<NodeModel>> models;
  for (const std::string& name : package_machines)
    if (name != "recorded-4xh200")
      models.push_back(std::make_unique<NodeModel>(package_machine(name), costs_of(package_machine(name))));
  for (const auto& here : models)
    for (const auto& there : models) {
      for (const char* kind : {"switch", "fat-tree", "rail-optimised"}) {
        ClusterSpec two = nodes_of({0, 1}, {there.get()});
        two.network.kind = kind;
        const Seconds out = time_of(*here, two, path, bytes);
        ClusterSpec turned = nodes_of({0, 1}, {here.get()});
        turned.network.kind = kind;
        EXPECT_GT(out, static_cast<double>(bytes) / 50e9) << here->topology().name << " " << there->topology().name;
        EXPECT_NEAR(out / time_of(*there, turned, path, bytes), 1, 0.5) << here->topology().name;
      }
    }
}

TEST(MixedCluster, TheProfileHasRoadsToEveryType) {
  const NodeModel node = model_of_machine("hse-a"), other = model_of_machine("hse-e");
  CampaignOptions options;
  options.places = {gpu(0)};
  options.processes = {1};
  options.quick = true;
  options.budget_seconds = 1000;
  options.survey = false;
  options.operations = {Operation::latency};
  const Profile profile = measure_simulated(node, nodes_of({0, 1, 0}, {&other}), options, nullptr, ProgressCallback());
  ASSERT_EQ(profile.other_nodes.size(), 2u);
  const Plan plan = choose(profile, mechanism_order(), {});
  const Chooser chooser(plan);
  for (const NodeModel* there : {&node, &other}) {
    const Place destination = on_node(node_type(fingerprint(there->topology())), gpu(0));
    for (const std::string rail : {"", "mlx5_0:1", "mlx5_0:1/mlx5_1:1", "mlx5_1:1"}) {
      const PlanRow* row = chooser.choose(gpu(0), destination, 2, Operation::latency, 4096, rail);
      ASSERT_NE(row, nullptr) << text(destination) << " over " << rail;
      if (!rail.empty()) {
        EXPECT_EQ(row->path().parameter("device"), rail);
      }
    }
    EXPECT_EQ(chooser.choose(gpu(0), destination, 2, Operation::latency, 4096, "mlx5_7:1"), nullptr);
    std::vector<std::string> ways;
    for (const Series& series : profile.series)
      if (series.path.destination == destination)
        ways.push_back(series.path.mechanism + std::string(series.path.has("gdr") ? series.path.parameter("gdr") : "") +
                       std::string(series.path.has("gdrcopy") ? series.path.parameter("gdrcopy") : ""));
    EXPECT_TRUE(std::ranges::any_of(profile.series, [&](const Series& series) {
      return series.path.destination == destination && series.path.has("share");
    })) << text(destination);
    for (const char* way : {"ucxoffoff", "ucxoffon", "ucxonoff", "ucxonon", "ucx_staged"})
      EXPECT_NE(std::ranges::count(ways, way), 0) << way;
  }
}

// Two rails by shares that Waywiser cuts take what UCX's own two rails take, for messages that keep both busy.
TEST(Rails, SharesOverTwoRailsTakeAsLongAsTwoRailsOfUcx) {
  const NodeModel node = model_of_machine("hse-e");
  const ClusterSpec two = nodes_of({0, 0}, {});
  const Bytes bytes = Bytes{64} << 20;
  Path path = to_other("mlx5_0:1+mlx5_1:1", "on");
  Seconds best = 1;
  for (const char* share : {"50+50", "60+40", "75+25", "90+10"}) {
    path.parameters["share"] = share;
    best = std::min(best, time_of(node, two, path, bytes));
  }
  Path by_ucx = to_other("", "on");
  by_ucx.parameters.erase("device");
  by_ucx.parameters["nics"] = "2";
  EXPECT_NEAR(best / time_of(node, two, by_ucx, bytes), 1, 0.1);
  EXPECT_LT(best, 0.8 * time_of(node, two, to_other("mlx5_0:1", "on"), bytes));
}

// What is staged is no faster than its wire.
TEST(StagedThroughHosts, TakesAtLeastWhatTheSameTransportTakesBetweenHosts) {
  const NodeModel node = model_of_machine("hse-a");
  const ClusterSpec two = nodes_of({0, 0}, {});
  for (const char* transport : {"rc", "dc", "ud", "ib", "roce", "network-tcp"})
    for (const Bytes bytes : {Bytes{64}, Bytes{64} << 10, Bytes{256} << 20}) {
      const Path wire{"ucx", host(0), host(0), 2, {{"transports", transport}, {"device", "mlx5_0:1"}}};
      Path path{"ucx_staged", gpu(0), gpu(0), 2, wire.parameters};
      const Seconds between =
          simulate(node, two, {wire, {0, "host0"}, {1, "host0"}, Operation::latency, bytes, {}}).seconds;
      for (const char* variant : {"pageable", "whole"}) {
        path.parameters["variant"] = variant;
        EXPECT_GT(time_of(node, two, path, bytes), between) << transport << " " << bytes;
      }
    }
}

// The copies of a GPU's memory come on top of what UCX takes between hosts.
TEST(StagedThroughHosts, TakesItsCopiesAndTheWire) {
  const NodeModel node = model_of_machine("hse-a");
  const ClusterSpec two = nodes_of({0, 0}, {});
  const auto staged = [&](const std::string& variant, Bytes bytes) {
    Path path{"ucx_staged", gpu(0), gpu(0), 2, {{"transports", "rc"}, {"device", "mlx5_0:1"}, {"variant", variant}}};
    if (variant == "pipelined") path.parameters.insert({{"chunk", "1M"}, {"depth", "4"}});
    return time_of(node, two, path, bytes);
  };
  const Path wire{"ucx", host(0), host(0), 2, {{"transports", "rc"}, {"device", "mlx5_0:1"}}};
  const Bytes bytes = Bytes{64} << 20;
  const Seconds between =
      simulate(node, two, {wire, {0, "host0"}, {1, "host0"}, Operation::latency, bytes, {}}).seconds;
  EXPECT_GT(staged("whole", bytes), 2.5 * between);
  EXPECT_LT(staged("pipelined", bytes), 1.3 * between);
  EXPECT_GT(staged("pageable", bytes), staged("whole", bytes));
}

}  // namespace
}  // namespace waywiser::sim
