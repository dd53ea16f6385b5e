#include "waywiser/sim/event_loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace waywiser::sim {
namespace {

class Ends : public Listener {
 public:
  explicit Ends(EventLoop& engine) : engine_(engine) {}
  void wake(std::uint64_t token) override { at[token] = engine_.now(); }
  std::map<std::uint64_t, Seconds> at;

 private:
  EventLoop& engine_;
};

TEST(EventLoop, OneFlowTakesLatencyAndBytesOverRate) {
  EventLoop engine;
  Ends ends(engine);
  const LinkId link = engine.network().add_link(4);
  engine.transfer(std::vector<Use>{{link, 1}}, no_cap, 10, 0.5, ends, 1);
  engine.run();
  EXPECT_DOUBLE_EQ(ends.at[1], 0.5 + 10.0 / 4);
}

// Two flows share until the shorter one ends: t1 = 2 x 2 / 4, then the other one has the hop for itself.
TEST(EventLoop, AFlowSpeedsUpWhenAnotherEnds) {
  EventLoop engine;
  Ends ends(engine);
  const LinkId link = engine.network().add_link(4);
  engine.transfer(std::vector<Use>{{link, 1}}, no_cap, 2, 0, ends, 1);
  engine.transfer(std::vector<Use>{{link, 1}}, no_cap, 10, 0, ends, 2);
  engine.run();
  EXPECT_DOUBLE_EQ(ends.at[1], 1);
  EXPECT_DOUBLE_EQ(ends.at[2], 3);
}

struct Case {
  std::vector<double> capacities;
  std::vector<std::vector<Use>> ways;
  std::vector<double> bytes, begins;
};

Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  Case made;
  for (int i = 0; i < 8; ++i) made.capacities.push_back(1 + static_cast<double>(random() % 50));
  for (int i = 0; i < 40; ++i) {
    std::vector<Use> way;
    for (unsigned hop = 0; hop < 1 + random() % 3; ++hop) way.push_back({static_cast<LinkId>(random() % 8), 1});
    made.ways.push_back(way);
    made.bytes.push_back(1 + static_cast<double>(random() % 1000));
    made.begins.push_back(static_cast<double>(random() % 20));
  }
  return made;
}

std::map<std::uint64_t, Seconds> run(const Case& what, double* moved = nullptr) {
  EventLoop engine;
  Ends ends(engine);
  for (const double capacity : what.capacities) engine.network().add_link(capacity);
  for (std::size_t i = 0; i < what.ways.size(); ++i)
    engine.transfer(what.ways[i], no_cap, what.bytes[i], what.begins[i], ends, i);
  engine.run();
  if (moved != nullptr) *moved = engine.bytes_moved();
  return ends.at;
}

TEST(EventLoop, NoFlowIsFasterThanItsHopsAndNoneIsLost) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    const Case made = random_case(seed);
    double moved = 0, sum = 0;
    const auto ends = run(made, &moved);
    ASSERT_EQ(ends.size(), made.ways.size());
    for (std::size_t i = 0; i < made.ways.size(); ++i) {
      for (const Use& use : made.ways[i])
        EXPECT_GE(ends.at(i) - made.begins[i], made.bytes[i] / made.capacities[use.link] * (1 - 1e-9));
      sum += made.bytes[i];
    }
    EXPECT_DOUBLE_EQ(moved, sum);
  }
}

// The transfers over a hop cannot end before all their bytes have passed it.
TEST(EventLoop, AHopCarriesAllItsBytes) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Case made = random_case(seed);
    std::ranges::fill(made.begins, 0);
    const auto ends = run(made);
    std::vector<double> load(made.capacities.size());
    Seconds last = 0;
    for (std::size_t i = 0; i < made.ways.size(); ++i) {
      for (const Use& use : made.ways[i]) load[use.link] += made.bytes[i];
      last = std::max(last, ends.at(i));
    }
    for (std::size_t link = 0; link < load.size(); ++link)
      EXPECT_GE(last, load[link] / made.capacities[link] * (1 - 1e-9));
  }
}

TEST(EventLoop, SameInputSameTimesToTheLastDigit) {
  const Case made = random_case(7);
  EXPECT_EQ(run(made), run(made));
}

TEST(EventLoop, SymmetricFlowsEndTogether) {
  EventLoop engine;
  Ends ends(engine);
  for (int i = 0; i < 16; ++i) engine.network().add_link(3);
  for (LinkId i = 0; i < 16; ++i)
    engine.transfer(std::vector<Use>{{i, 1}, {(i + 1) % 16, 1}}, no_cap, 12, 0.25, ends, i);
  engine.run();
  for (const auto& [unused, at] : ends.at) EXPECT_DOUBLE_EQ(at, 0.25 + 12 / 1.5);
}

}  // namespace
}  // namespace waywiser::sim
