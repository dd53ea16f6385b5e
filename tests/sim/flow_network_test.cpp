#include "waywiser/sim/flow_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr double tolerance = 1e-6;

// Every flow runs at its cap, or crosses a full hop on which none is faster.
void expect_max_min(const FlowNetwork& network, const std::vector<FlowId>& flows) {
  for (const FlowId flow : flows) {
    bool held = network.rate(flow) >= network.cap(flow) * (1 - tolerance);
    for (const Use& use : network.uses(flow)) {
      double used = 0, fastest = 0;
      for (const FlowId other : network.flows_on(use.link)) {
        for (const Use& hop : network.uses(other))
          if (hop.link == use.link) used += hop.weight * network.rate(other);
        fastest = std::max(fastest, network.rate(other));
      }
      ASSERT_LE(used, network.capacity(use.link) * (1 + tolerance));
      held = held ||
             (used >= network.capacity(use.link) * (1 - tolerance) && network.rate(flow) >= fastest * (1 - tolerance));
    }
    ASSERT_TRUE(held) << "flow " << flow << " has no bottleneck";
  }
}

std::vector<Use> random_way(std::mt19937& random, std::size_t links) {
  std::vector<Use> uses;
  for (std::size_t i = 0; i < 1 + random() % 4; ++i)
    uses.push_back({static_cast<LinkId>(random() % links), random() % 5 == 0 ? 2.0 : 1.0});
  return uses;
}

TEST(FlowNetwork, SharesOneHopAlike) {
  FlowNetwork network;
  const LinkId link = network.add_link(9);
  std::vector<FlowId> flows;
  for (int i = 0; i < 3; ++i) flows.push_back(network.start(std::vector<Use>{{link, 1}}));
  network.solve();
  for (const FlowId flow : flows) EXPECT_DOUBLE_EQ(network.rate(flow), 3);
}

TEST(FlowNetwork, GivesWhatOthersCannotUse) {
  FlowNetwork network;
  const LinkId wide = network.add_link(10), narrow = network.add_link(2);
  const FlowId held = network.start(std::vector<Use>{{wide, 1}, {narrow, 1}});
  const FlowId capped = network.start(std::vector<Use>{{wide, 1}}, 3);
  const FlowId free = network.start(std::vector<Use>{{wide, 1}});
  network.solve();
  EXPECT_DOUBLE_EQ(network.rate(held), 2);
  EXPECT_DOUBLE_EQ(network.rate(capped), 3);
  EXPECT_DOUBLE_EQ(network.rate(free), 5);
}

TEST(FlowNetwork, CountsAHopThatIsCrossedTwiceTwice) {
  FlowNetwork network;
  const LinkId memory = network.add_link(10);
  const FlowId flow = network.start(std::vector<Use>{{memory, 1}, {memory, 1}});
  network.solve();
  EXPECT_DOUBLE_EQ(network.rate(flow), 5);
}

TEST(FlowNetwork, RefusesWhatHasNoRate) {
  FlowNetwork network;
  EXPECT_THROW(network.add_link(0), Error);
  EXPECT_THROW(network.start({}), Error);
  EXPECT_THROW(network.start({}, -1), Error);
}

// Random flows come and go; after every change the rates are max-min fair and equal to those of filling from scratch.
TEST(FlowNetwork, IsMaxMinFairWhateverComesAndGoes) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const std::size_t links = 2 + random() % 20;
    FlowNetwork network;
    for (std::size_t i = 0; i < links; ++i) network.add_link(1 + static_cast<double>(random() % 100));
    std::vector<FlowId> alive;
    for (int step = 0; step < 60; ++step) {
      if (!alive.empty() && random() % 3 == 0) {
        const std::size_t gone = random() % alive.size();
        network.finish(alive[gone]);
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(gone));
      } else {
        const double cap = random() % 4 == 0 ? 1 + static_cast<double>(random() % 20) : no_cap;
        alive.push_back(network.start(random_way(random, links), cap));
      }
      network.solve();
      expect_max_min(network, alive);
      if (HasFatalFailure()) return;
    }
    FlowNetwork fresh;
    for (LinkId link = 0; link < links; ++link) fresh.add_link(network.capacity(link));
    std::vector<FlowId> copies;
    for (const FlowId flow : alive) copies.push_back(fresh.start(network.uses(flow), network.cap(flow)));
    fresh.solve();
    for (std::size_t i = 0; i < alive.size(); ++i)
      EXPECT_NEAR(fresh.rate(copies[i]), network.rate(alive[i]), tolerance * fresh.rate(copies[i]));
  }
}

TEST(FlowNetwork, TouchesOnlyWhatIsAffected) {
  FlowNetwork network;
  std::vector<LinkId> links;
  for (int i = 0; i < 1000; ++i) links.push_back(network.add_link(1));
  for (const LinkId link : links) network.start(std::vector<Use>{{link, 1}});
  network.solve();
  const std::size_t before = network.flows_filled();
  network.start(std::vector<Use>{{links[7], 1}});
  network.solve();
  EXPECT_LE(network.flows_filled() - before, 4u);
  EXPECT_EQ(network.changed().size(), 2u);
}

}  // namespace
}  // namespace waywiser::sim
