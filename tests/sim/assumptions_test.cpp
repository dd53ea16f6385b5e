// What is not known of a part is said, and is not that of an old part.
#include <gtest/gtest.h>

#include "tests/sim/package_machines.hpp"
#include "tests/topology/made_up_machines.hpp"
#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/request.hpp"
#include "waywiser/sim/timing.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes one_gib = Bytes{1} << 30;

Topology with_cpu(std::string machine, const std::string& cpu) {
  Topology topology = package_machine(machine);
  for (Device& device : topology.devices)
    if (device.kind == "cpu") device.name = cpu;
  return topology;
}

Seconds read_directly(const NodeModel& node) {
  ClusterSpec two;
  two.network.nodes = 2;
  const Path path{"ucx", gpu(0), host(0), 2, {{"transports", "rc"}, {"gdr", "on"}, {"gdrcopy", "on"}}};
  return simulate(node, two, {path, {0, "gpu0"}, {1, "host0"}, Operation::latency, one_gib, {}}).seconds;
}

Assumptions about(const Assumptions& all, const std::string& parameter) {
  Assumptions found;
  for (const Assumption& one : all)
    if (one.parameter == parameter) found.insert(one);
  return found;
}

TEST(Assumptions, ACpuWithoutARowHasTheLimitsOfItsLinks) {
  for (const char* cpu :
       {"Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", "INTEL(R) XEON(R) PLATINUM 8580", "Grace", "Neoverse-V2", ""}) {
    const Topology machine = with_cpu("hse-c", cpu);
    const NodeModel node(machine, costs_of(machine));
    EXPECT_GT(static_cast<double>(one_gib) / read_directly(node), 11e9) << cpu;
    const Assumptions told = about(node.assumed(), "cpu.p2p_read");
    ASSERT_EQ(told.size(), 1u) << cpu;
    const std::string name = std::string(cpu).empty() ? "the CPUs" : cpu;
    EXPECT_EQ(*told.begin(), (Assumption{name, "cpu.p2p_read", "GPUDirect read limit", "the PCIe link's"}));
  }
}

TEST(Assumptions, WhatIsKnownOrSetIsNotAssumed) {
  for (const char* machine : {"hse-a", "hse-c", "dgx-1v"}) {
    const NodeModel node(package_machine(machine), costs_of(package_machine(machine)));
    read_directly(node);
    EXPECT_TRUE(about(node.assumed(), "cpu.p2p_read").empty()) << machine;
  }
  const Topology machine = with_cpu("hse-c", "Grace");
  Costs costs = costs_of(machine);
  apply(costs, {{"cpu.p2p_read", 3e9}}, "--set");
  const NodeModel node(machine, costs);
  EXPECT_NEAR(static_cast<double>(one_gib) / read_directly(node), 3e9, 1e8);
  EXPECT_TRUE(about(node.assumed(), "cpu.p2p_read").empty());
}

TEST(Assumptions, OnlyWhatWasAskedForIsTold) {
  const Topology machine = with_cpu("hse-c", "Grace");
  const NodeModel node(machine, costs_of(machine));
  const Path path{"copy_engine", gpu(0), gpu(1), 1, {}};
  simulate(node, {}, {path, {0, "gpu0"}, {0, "gpu1"}, Operation::latency, one_gib, {}});
  EXPECT_TRUE(about(node.assumed(), "cpu.p2p_read").empty());
  EXPECT_TRUE(about(node.assumed(), "nic.latency").empty());
  EXPECT_EQ(about(node.assumed(), "copy.issue_peer").size(), 1u);  // V100s have an H200's
}

// A number that was taken from one part says from which.
TEST(Assumptions, EveryNumberOfAPartInTheRowForAnyMachineSaysWhose) {
  const Json parts = package_parts();
  for (const auto& [name, entry] : parts.at("parts").at(0).at("values").items()) {
    const std::string source = entry.at("source");
    const bool general = source.starts_with("0: ") || source.starts_with("UCX_") || source.starts_with("transport/") ||
                         source.starts_with("a slot of UCX_") || source.starts_with("NCCL ") || name == "ucx.fragments";
    const bool told = entry.contains("of") && entry.contains("what") && entry.contains("assumed");
    EXPECT_TRUE(told || general) << name;
  }
}

TEST(Assumptions, OfSeveralGpusThoseOfOthersAreTold) {
  Topology machine = package_machine("hse-e");
  for (Device& device : machine.devices)
    if (device.id == "gpu0") device.name = "Tesla T4";
  const Costs costs = costs_of(machine);
  static_cast<void>(costs["sm.multiprocessors"]);
  ASSERT_EQ(about(costs.assumed(), "sm.multiprocessors").size(), 1u);
  EXPECT_EQ(about(costs.assumed(), "sm.multiprocessors").begin()->part, "Tesla T4");
}

TEST(Assumptions, ALinkWithoutARateIsTold) {
  Topology machine = package_machine("hse-c");
  for (Link& link : machine.links)
    if (link.kind == "pcie") link.nominal = link.achievable = std::nullopt;
  const NodeModel node(machine, costs_of(machine));
  read_directly(node);
  const auto told = node.assumed();
  EXPECT_TRUE(std::ranges::any_of(told, [](const Assumption& one) {
    return one.part.starts_with("pcie link ") && one.what == "rate" && one.assumed == "no limit";
  }));
}

// Eight GPUs on PCIe in two sockets; what the driver says of peer access between all of them.
Topology pcie_gpus(const std::string& cpu, const std::string& peers) {
  Topology topology = made_up::two_packages();
  for (Device& device : topology.devices)
    if (device.kind == "cpu") device.name = cpu;
  for (int i = 0; i < 8; ++i) {
    const std::string id = "gpu" + std::to_string(i);
    made_up::add_on(topology, id, "gpu", i < 4 ? "root0" : "root1", 3);
    for (int j = 0; j < 8; ++j)
      if (i != j) topology.devices.back().attributes["peer:gpu" + std::to_string(j)] = peers;
    topology.devices.back().attributes["memory_bandwidth"] = "900000000000";
  }
  for (Link& link : topology.links) {
    if (link.kind == "pcie") link.nominal = 15.75e9;
    if (link.kind == "memory") link.nominal = 100e9;
    if (link.kind == "socket") link.nominal = 40e9;
  }
  return topology;
}

TEST(PeerCopies, WithPeerAccessNoCollectiveTakesLonger) {
  for (const char* cpu :
       {"Intel Xeon E5-2650 v4", "Intel Xeon E5-2650 v3", "Intel Xeon Gold 6152", "AMD EPYC 7742", "Grace"}) {
    const Topology with = pcie_gpus(cpu, "ok"), without = pcie_gpus(cpu, "switched off");
    const NodeModel peers(with, costs_of(with)), none(without, costs_of(without));
    for (const char* algorithm : {"ring", "double_tree"})
      for (const Bytes size : {Bytes{1} << 12, Bytes{1} << 20, Bytes{1} << 30}) {
        CollectiveTrial trial;
        trial.algorithm = algorithm;
        trial.bytes = size;
        const Seconds limit = simulate(none, {}, trial).seconds;
        EXPECT_LE(simulate(peers, {}, trial).seconds, limit * (1 + 1e-9)) << cpu << " " << algorithm << " " << size;
      }
  }
}

TEST(Assumptions, AreInTheAnswerOfTheSimulator) {
  const Topology machine = with_cpu("hse-c", "Grace");
  const NodeModel node(machine, costs_of(machine));
  const Path path{"ucx", gpu(0), gpu(0), 2, {{"transports", "rc"}, {"gdr", "on"}, {"gdrcopy", "on"}}};
  const Json request{{"cluster", {{"nodes", 2}}},
                     {"paths", {{{"path", to_json(path)}, {"from_node", 0}, {"to_node", 1}}}},
                     {"operations", {"latency"}},
                     {"sizes", {8}}};
  const Json answer = simulate_paths(node, {}, request, ProgressCallback());
  EXPECT_EQ(answer.at("assumed"), to_json(node.assumed()));
  EXPECT_NE(answer.dump().find("GPUDirect read limit"), std::string::npos);
}

}  // namespace
}  // namespace waywiser::sim
