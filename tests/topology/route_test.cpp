#include "waywiser/topology/route.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/topology/made_up_machines.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/topology/pair_group.hpp"
#include "waywiser/topology/relation.hpp"

namespace waywiser {
namespace {

// gpu0, gpu1 on one switch; gpu2 on a second switch below the same upper one; gpu3 on the root; gpu4 on another root of
// the node; gpu5 on the other package; nic0 beside gpu0.
Topology machine() {
  Topology topology = made_up::two_packages();
  made_up::add_on(topology, "switch0", "switch", "root0");
  made_up::add_on(topology, "switch1", "switch", "switch0");
  made_up::add_on(topology, "switch2", "switch", "switch0");
  made_up::add_on(topology, "gpu0", "gpu", "switch1");
  made_up::add_on(topology, "gpu1", "gpu", "switch1", 4, 8);
  made_up::add_on(topology, "gpu2", "gpu", "switch2");
  made_up::add_on(topology, "gpu3", "gpu", "root0");
  made_up::add(topology, "root2", "root", 0);
  made_up::join(topology, "cpu0", "root2", "internal");
  made_up::add_on(topology, "gpu4", "gpu", "root2");
  made_up::add_on(topology, "gpu5", "gpu", "root1");
  made_up::add_on(topology, "nic0", "nic", "switch1");
  fill_rates(topology);
  return topology;
}

TEST(Relation, WordsOfNvidiaSmi) {
  const Topology topology = machine();
  EXPECT_EQ(relation(topology, "gpu0", "gpu0"), "X");
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(relation(topology, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(relation(topology, "gpu0", "gpu2"), "PXB");
  EXPECT_EQ(relation(topology, "gpu0", "gpu3"), "PHB");
  EXPECT_EQ(relation(topology, "gpu0", "gpu4"), "NODE");
  EXPECT_EQ(relation(topology, "gpu0", "gpu5"), "SYS");
  EXPECT_EQ(relation(topology, "gpu0", "host0"), "PHB");
  EXPECT_EQ(relation(topology, "gpu0", "host1"), "SYS");
  EXPECT_EQ(relation(topology, "host0", "host1"), "SYS");
}

TEST(Relation, NvlinksDirectAndThroughSwitches) {
  Topology topology = machine();
  made_up::join(topology, "gpu0", "gpu5", "nvlink", 3, 0, 2);
  EXPECT_EQ(relation(topology, "gpu5", "gpu0"), "NV2");
  made_up::add(topology, "nvswitch0", "nvswitch", -1);
  for (const char* gpu : {"gpu1", "gpu2"}) made_up::join(topology, gpu, "nvswitch0", "nvlink", 3, 0, 12);
  made_up::join(topology, "gpu3", "nvswitch0", "nvlink", 3, 0, 6);  // half of its links are down
  EXPECT_EQ(relation(topology, "gpu1", "gpu2"), "NV12");
  EXPECT_EQ(relation(topology, "gpu1", "gpu3"), "NV6");
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "PIX");
}

TEST(Relation, NvlinkToTheCpuIsNoPeerLink) {
  Topology topology = made_up::two_packages();
  for (const char* gpu : {"gpu0", "gpu1"}) {
    made_up::add(topology, gpu, "gpu", 0);
    made_up::join(topology, gpu, "cpu0", "nvlink", 2, 0, 3);
  }
  EXPECT_EQ(relation(topology, "gpu0", "gpu1"), "NODE");
  EXPECT_EQ(relation(topology, "gpu0", "host0"), "PHB");
  EXPECT_EQ(route(topology, "gpu0", "host0").hops.front().link.kind, "nvlink");
}

TEST(Route, TheSlowestHopIsTheLimit) {
  const Topology topology = machine();
  const Route found = route(topology, "gpu0", "gpu1");
  ASSERT_EQ(found.hops.size(), 2u);
  EXPECT_EQ(found.hops[0].from, "gpu0");
  EXPECT_EQ(found.hops[1].to, "gpu1");
  EXPECT_NEAR(*found.limit, 15.754e9, 1e6);
  EXPECT_NE(found.limit_source.find("PCIe 4 x8"), std::string::npos);
  EXPECT_NEAR(*route(topology, "gpu0", "host1").limit, 31.508e9, 1e6);
  EXPECT_EQ(route(topology, "gpu0", "host1").hops.size(), 6u);
}

TEST(Route, NvlinkFirstAndTheHostWhenAskedFor) {
  Topology topology = machine();
  made_up::join(topology, "gpu0", "gpu5", "nvlink", 3, 0, 2);
  fill_rates(topology);
  EXPECT_DOUBLE_EQ(*route(topology, "gpu0", "gpu5").limit, 50e9);
  const Route host = route(topology, "gpu0", "gpu5", Links::no_gpu_fabric);
  EXPECT_NEAR(*host.limit, 31.508e9, 1e6);
  EXPECT_EQ(host.hops.size(), 7u);
}

TEST(Route, WithinOneMemoryHalfItsBandwidth) {
  Topology topology = machine();
  EXPECT_FALSE(route(topology, "host0", "host0").limit.has_value());
  topology.links[0].nominal = 200e9;
  EXPECT_DOUBLE_EQ(*route(topology, "host0", "host0").limit, 100e9);
  EXPECT_TRUE(route(topology, "host0", "host0").hops.empty());
  for (Device& device : topology.devices)
    if (device.id == "gpu0") device.attributes["memory_bandwidth"] = "4.8e12";
  EXPECT_DOUBLE_EQ(*route(topology, "gpu0", "gpu0").limit, 2.4e12);
}

TEST(Route, NothingConnectsIsAnError) {
  Topology topology = machine();
  made_up::add(topology, "gpu9", "gpu");
  EXPECT_THROW(route(topology, "gpu0", "gpu9"), Error);
  EXPECT_THROW(route(topology, "gpu0", "gpu77"), Error);
  EXPECT_EQ(relation(topology, "gpu5", "gpu9"), "SYS");
}

TEST(PeerAccess, RuleAndRecord) {
  Topology topology = machine();
  EXPECT_FALSE(why_no_peer_access(topology, "gpu0", "gpu2"));
  EXPECT_FALSE(why_no_peer_access(topology, "gpu0", "gpu3"));
  EXPECT_EQ(*why_no_peer_access(topology, "gpu0", "gpu5"),
            "no peer access between gpu0 and gpu5: different root complexes");
  EXPECT_TRUE(why_no_peer_access(topology, "gpu0", "host0"));
  for (Device& device : topology.devices)
    if (device.id == "gpu0")
      device.attributes = {{"peer:gpu2", "the chipset does not support it"}, {"peer:gpu5", "ok"}};
  EXPECT_EQ(*why_no_peer_access(topology, "gpu0", "gpu2"),
            "no peer access between gpu0 and gpu2: the chipset does not support it");
  EXPECT_FALSE(why_no_peer_access(topology, "gpu0", "gpu5"));
}

TEST(PairGroups, EveryOrderedPairIsInExactlyOne) {
  const Topology topology = machine();
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> names;
  for (const PairGroup& group : pair_groups(topology, SamePlace::included)) {
    EXPECT_TRUE(names.insert(group.name).second) << group.name;
    for (const auto& pair : group.members) EXPECT_TRUE(seen.insert(pair).second) << pair.first << pair.second;
  }
  const std::size_t number = places(topology).size();
  EXPECT_EQ(seen.size(), number * number);
}

TEST(PairGroups, ATrainedDownLinkIsNotAlike) {
  const Topology topology = machine();
  const auto group_of = [&](const std::string& a, const std::string& b) {
    for (const PairGroup& group : pair_groups(topology))
      for (const auto& pair : group.members)
        if (pair == std::pair(a, b)) return group.name;
    return std::string();
  };
  EXPECT_NE(group_of("host0", "gpu0"), group_of("host0", "gpu1"));  // 16 lanes, 8 lanes
  EXPECT_EQ(group_of("host0", "gpu0"), group_of("host0", "gpu2"));
  EXPECT_NE(group_of("host0", "gpu0"), group_of("gpu0", "host0"));
}

}  // namespace
}  // namespace waywiser
