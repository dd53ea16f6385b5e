#include "waywiser/sim/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

NetworkSpec spec_of(const std::string& kind, int nodes, std::vector<int> shape = {}) {
  NetworkSpec spec;
  spec.kind = kind;
  spec.nodes = nodes;
  spec.rails = 2;
  spec.port_rate = 10;
  spec.shape = std::move(shape);
  return spec;
}

const std::vector<NetworkSpec> kinds{spec_of("switch", 12),
                                     spec_of("fat-tree", 200),
                                     spec_of("fat-tree", 1000),
                                     spec_of("rail-optimised", 100),
                                     spec_of("dragonfly", 48, {6, 4, 2}),
                                     spec_of("torus", 60, {3, 4, 5})};

// From every port to every other: out of the first, into the last, no hop twice, at least one switch.
TEST(Network, ConnectsEveryPort) {
  for (const NetworkSpec& spec : kinds) {
    FlowNetwork links;
    const auto network = make_network(spec, links);
    std::set<LinkId> first, last;
    for (int a = 0; a < spec.nodes; a += 1 + spec.nodes / 40)
      for (int b = 0; b < spec.nodes; b += 1 + spec.nodes / 37) {
        if (a == b) continue;
        const Crossing way = network->cross({a, 0}, {b, 1});
        ASSERT_GE(way.links.size(), 2u);
        ASSERT_GE(way.switches, 1);
        EXPECT_EQ(std::set<LinkId>(way.links.begin(), way.links.end()).size(), way.links.size()) << spec.kind;
        for (const LinkId link : way.links) ASSERT_LT(link, links.links());
        first.insert(way.links.front());
        last.insert(way.links.back());
      }
    for (const LinkId link : first) EXPECT_FALSE(last.contains(link));
  }
}

TEST(Network, ATorusTakesTheShortWayRound) {
  FlowNetwork links;
  const auto network = make_network(spec_of("torus", 10, {10}), links);
  EXPECT_EQ(network->cross({0, 0}, {3, 0}).links.size(), 2u + 3);
  EXPECT_EQ(network->cross({0, 0}, {9, 0}).links.size(), 2u + 1);
}

TEST(Network, RailsMeetBelowOneLeaf) {
  FlowNetwork links;
  const auto network = make_network(spec_of("rail-optimised", 18), links);
  EXPECT_EQ(network->cross({0, 0}, {17, 0}).switches, 1);
  EXPECT_EQ(network->cross({0, 0}, {17, 1}).switches, 3);
}

TEST(Network, WaysAvoidAFailedLink) {
  NetworkSpec spec = spec_of("fat-tree", 40);
  FlowNetwork before;
  const Crossing way = make_network(spec, before)->cross({0, 0}, {39, 0});
  const LinkId up = way.links[1];
  const auto first = static_cast<LinkId>(2 * spec.nodes * spec.rails);
  spec.sick = {{(up - first) / 2, 0}};
  FlowNetwork after;
  const Crossing other = make_network(spec, after)->cross({0, 0}, {39, 0});
  EXPECT_NE(other.links[1], up);
  EXPECT_EQ(other.links.size(), way.links.size());
}

// A tree of n switches has n - 1 cables, each a hop up and one down, and two hops for each port.
TEST(Network, ATreeJoinsAllPortsOverOneCableLessThanSwitches) {
  const std::vector<std::size_t> switches{1, 23 + 1, 112 + 7 + 1, 6 + 1, 24, 60};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    FlowNetwork links;
    const auto network = make_network(kinds[kind], links);
    std::vector<Port> ports;
    for (int node = 0; node < kinds[kind].nodes; ++node) ports.push_back({node, 1});
    const SwitchTree tree = network->tree_over(ports, 0);
    const std::set<LinkId> hops(tree.links.begin(), tree.links.end());
    EXPECT_EQ(hops.size(), tree.links.size()) << kinds[kind].kind;
    EXPECT_EQ(hops.size(), 2 * ports.size() + 2 * (switches[kind] - 1)) << kinds[kind].kind;
  }
}

TEST(Network, TreesOfAFatTreeShareNoCableWhileThereAreSpines) {
  const NetworkSpec spec = spec_of("fat-tree", 200);
  FlowNetwork links;
  const auto network = make_network(spec, links);
  std::map<LinkId, int> uses;
  for (std::size_t number = 0; number < 18; ++number)
    for (const LinkId link : network->tree_over({{0, 0}, {199, 0}}, number).links) ++uses[link];
  for (const auto& [link, times] : uses)
    if (link >= static_cast<LinkId>(2 * spec.nodes * spec.rails)) {
      EXPECT_EQ(times, 1) << link;
    }
}

TEST(Network, ATreeAvoidsAFailedLink) {
  NetworkSpec spec = spec_of("fat-tree", 40);
  const std::vector<Port> ports{{0, 0}, {39, 0}};
  FlowNetwork before, after;
  const SwitchTree whole = make_network(spec, before)->tree_over(ports, 0);
  const auto first = static_cast<LinkId>(2 * spec.nodes * spec.rails);
  const LinkId cable = *std::ranges::find_if(whole.links, [&](LinkId link) { return link >= first; });
  spec.sick = {{(cable - first) / 2, 0}};
  const SwitchTree other = make_network(spec, after)->tree_over(ports, 0);
  EXPECT_EQ(other.links.size(), whole.links.size());
  EXPECT_EQ(std::ranges::count(other.links, cable), 0);
}

TEST(Network, ANodeMayHaveFewerNics) {
  NetworkSpec spec = spec_of("fat-tree", 2);
  spec.rates_of_ports = {10, 10, 5, 0};
  FlowNetwork links;
  const Crossing way = make_network(spec, links)->cross({0, 1}, {1, 0});
  EXPECT_EQ(links.capacity(way.links.back()), 5);
}

TEST(Network, RefusesShapesThatDoNotFit) {
  FlowNetwork links;
  EXPECT_THROW(make_network(spec_of("torus", 10, {3, 3}), links), Error);
  EXPECT_THROW(make_network(spec_of("dragonfly", 100, {2, 2, 2}), links), Error);
  EXPECT_THROW(make_network(spec_of("string", 2), links), Error);
  EXPECT_THROW(make_network(spec_of("switch", 0), links), Error);
}

// What a way carries over each hop between switches, for each byte.
std::map<LinkId, double> loads_of(const Crossing& way) {
  std::map<LinkId, double> found;
  for (const LinkId link : way.links) found[link] += 1;
  for (const Use& use : way.spread) found[use.link] += use.weight;
  return found;
}

// A leaf of 18 hosts has 18 cables up. Static: one of them. Adaptive: all that work, on both sides, in equal shares.
TEST(Network, AdaptiveRoutingSpreadsOverTheSpinesThatWork) {
  NetworkSpec spec = spec_of("fat-tree", 100);
  spec.adaptive = true;
  for (const std::size_t failures : {0u, 1u, 3u}) {
    spec.sick.clear();
    for (std::size_t cable = 0; cable < failures; ++cable) spec.sick.push_back({cable, 0});
    FlowNetwork links;
    const auto network = make_network(spec, links);
    const std::map<LinkId, double> loads = loads_of(network->cross({0, 0}, {99, 0}));
    EXPECT_EQ(loads.size(), 2 + 2 * (18 - failures));
    double up_and_down = 0;
    for (const auto& [link, load] : loads) up_and_down += load;
    EXPECT_NEAR(up_and_down, 4, 1e-9);
  }
}

// Six groups of four routers. The cable between two groups has failed: four other groups carry a quarter each.
TEST(Network, AdaptiveRoutingGoesAroundAFailedCableOfADragonfly) {
  NetworkSpec spec = spec_of("dragonfly", 48, {6, 4, 2});
  const std::size_t bundle = 6 * 4 * 4 + 0 * 6 + 1;  // from group 0 to group 1
  spec.sick = {{bundle, 0}};
  FlowNetwork links, adaptive_links;
  EXPECT_THROW(make_network(spec, links)->cross({0, 0}, {8, 0}), Error);
  spec.adaptive = true;
  const auto network = make_network(spec, adaptive_links);
  const Crossing around = network->cross({0, 0}, {8, 0});
  EXPECT_EQ(around.links.size(), 2u);
  double global = 0;
  const LinkId first = 2 * 2 * 48 + 6 * 4 * 4;
  for (const auto& [link, load] : loads_of(around)) global += link >= first ? load : 0;
  EXPECT_NEAR(global, 2, 1e-9);
  EXPECT_TRUE(network->cross({8, 0}, {0, 0}).spread.empty()) << "the other direction works";
}

TEST(Network, AdaptiveRoutingTakesTheOtherWayRoundATorus) {
  NetworkSpec spec = spec_of("torus", 10, {10});
  spec.sick = {{1, 0}};
  FlowNetwork links, adaptive_links;
  EXPECT_THROW(make_network(spec, links)->cross({0, 0}, {3, 0}), Error);
  spec.adaptive = true;
  EXPECT_EQ(make_network(spec, adaptive_links)->cross({0, 0}, {3, 0}).links.size(), 2u + 7);
}

}  // namespace
}  // namespace waywiser::sim
