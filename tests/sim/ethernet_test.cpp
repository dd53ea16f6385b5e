#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/trials.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/sim/simulated_meter.hpp"
#include "waywiser/sim/timing.hpp"
#include "waywiser/topology/route.hpp"

// Nodes whose network cards only carry TCP: bytes go through host memory and at the rate of a thread of TCP.
namespace waywiser::sim {
namespace {

Topology with_network(const std::string& machine, const std::string& name) {
  Topology made = package_machine(machine);
  for (Device& device : made.devices)
    if (device.kind == "network") device.name = name;
  return made;
}

NodeModel on_ethernet(const std::string& machine) {
  const Topology made = with_network(machine, "Ethernet");
  return {made, costs_of(made)};
}

Seconds seconds_of(const NodeModel& node, CollectiveTrial trial, DirectRdma direct, int nodes = 2) {
  trial.direct = direct;
  return simulate(node, cluster(nodes), trial).seconds;
}

Seconds message(const NodeModel& node, const std::string& transports, Place from, Place to, Bytes bytes) {
  const Path path{"ucx", from, to, 1, {{"transports", transports}}};
  return simulate(node, cluster(2), {path, {0, text(from)}, {1, text(to)}, Operation::latency, bytes, {}}).seconds;
}

TEST(PlainEthernet, CollectivesTakeAtLeastWhatRdmaThroughHostMemoryTakes) {
  const NodeModel rdma = node_of("dgx-a100"), tcp = on_ethernet("dgx-a100");
  for (const std::string algorithm : {"ring", "double_tree", "hierarchical", "nccl_ring", "nccl_tree", "nccl"})
    for (const Bytes bytes : {Bytes{8}, Bytes{64} << 10, Bytes{16} << 20}) {
      const CollectiveTrial trial = all_reduce(algorithm, bytes);
      const Seconds took = seconds_of(tcp, trial, DirectRdma::on);
      EXPECT_GE(took, seconds_of(rdma, trial, DirectRdma::off) + tcp.costs()["tcp.latency"] * 0.999)
          << algorithm << " " << bytes;
      EXPECT_DOUBLE_EQ(took, seconds_of(tcp, trial, DirectRdma::off)) << "there is no GPUDirect RDMA";
    }
}

// A ring of two nodes sends once from each to the other; each rail of NCCL's has a connection of its own.
TEST(PlainEthernet, AThreadOfTcpIsALimit) {
  const NodeModel tcp = on_ethernet("dgx-a100");
  const double bytes = 1 << 30, ranks = 16, sent = 2 * (ranks - 1) / ranks * bytes;
  const Seconds ring = seconds_of(tcp, all_reduce("ring", Bytes{1} << 30), DirectRdma::best);
  EXPECT_NEAR(ring, sent / tcp.costs()["tcp.rate"], 0.1 * ring);
  EXPECT_NEAR(seconds_of(tcp, all_reduce("nccl_ring", Bytes{1} << 30), DirectRdma::best), ring / 8, 0.1 * ring / 8);
}

TEST(PlainEthernet, SlowerThreadsAreNeverFaster) {
  Seconds before = 0;
  for (const double rate : {8e9, 4e9, 2e9, 1e9}) {
    const Topology made = with_network("dgx-h100", "Ethernet");
    Costs costs = costs_of(made);
    costs.set("tcp.rate", rate, "test");
    const Seconds took = seconds_of({made, costs}, all_reduce("nccl_nvls_tree", Bytes{1} << 28), DirectRdma::best);
    EXPECT_GT(took, before) << rate;
    before = took;
  }
}

TEST(PlainEthernet, TheNetworkDoesNotReduce) {
  ClusterSpec spec = cluster(2);
  spec.in_network_reduction = true;
  for (const std::string algorithm : {"in_network", "nccl_collnet"})
    EXPECT_THROW(simulate(on_ethernet("dgx-a100"), spec, all_reduce(algorithm, 8)), Error) << algorithm;
}

TEST(PlainEthernet, UcxGoesByTcpAlone) {
  const NodeModel rdma = node_of("hse-a"), tcp = on_ethernet("hse-a");
  for (const char* transports : {"ib", "roce", "rc", "dc", "ud"}) {
    EXPECT_THROW(message(tcp, transports, host(0), host(0), 8), Error) << transports;
    EXPECT_GT(message(rdma, transports, host(0), host(0), 8), 0) << transports;
  }
  for (const Place end : {host(0), gpu(0)})
    for (const Bytes bytes : {Bytes{8}, Bytes{1} << 26})
      EXPECT_DOUBLE_EQ(message(tcp, "network-tcp", end, end, bytes), message(rdma, "network-tcp", end, end, bytes))
          << text(end) << " " << bytes;
}

TEST(PlainEthernet, ProfilesHaveItsPaths) {
  const NodeModel tcp = on_ethernet("hse-a");
  for (const Subject& subject : simulated_network_subjects(tcp, tcp, {})) {
    EXPECT_FALSE(subject.families.empty());
    for (const Family& family : subject.families) EXPECT_EQ(family.base.parameter("transports"), "network-tcp");
  }
}

// As fast as they are: a card with RDMA beside one without is the rail.
TEST(PlainEthernet, BesideRdmaItIsNoRail) {
  Topology made = package_machine("hse-c");
  Device card = made.at("nic0");
  const std::string network = "network9";
  made.devices.push_back({network, "network", "Ethernet", "", -1, "", 0, {}});
  card.id = "nic9";
  card.name = "eth0";
  made.devices.push_back(card);
  for (const Link& link : std::vector<Link>(made.links))
    if (link.b == "nic0" || link.a == "nic0") {
      Link cable = link;
      (cable.a == "nic0" ? cable.a : cable.b) = "nic9";
      if (link.kind == "network") (cable.a == "nic9" ? cable.b : cable.a) = network;
      made.links.push_back(cable);
    }
  EXPECT_FALSE(has_rdma(made, "nic9"));
  EXPECT_TRUE(has_rdma(made, "nic0"));
  const NodeModel both(made, costs_of(made));
  const World world(both, cluster(2));
  EXPECT_EQ(std::ranges::count(world.rails(), "nic9"), 0);
  EXPECT_EQ(world.side_nics(), std::vector<std::string>{"nic9"});
  EXPECT_FALSE(world.by_tcp());
  EXPECT_DOUBLE_EQ(seconds_of(both, all_reduce("ring", Bytes{1} << 20), DirectRdma::best),
                   seconds_of(node_of("hse-c"), all_reduce("ring", Bytes{1} << 20), DirectRdma::best));
}

}  // namespace
}  // namespace waywiser::sim
