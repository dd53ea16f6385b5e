#include "waywiser/policy/envelope.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace waywiser {
namespace {

Point point_at(Bytes bytes, double seconds, double spread) {
  Point point;
  point.bytes = bytes;
  point.seconds = seconds;
  point.low = seconds * (1 - spread);
  point.high = seconds * (1 + spread);
  return point;
}

// Arbitrary positive pieces over a random part of the sizes: nothing is monotonic, some end early or begin late.
Cost random_cost(std::mt19937_64& random, double spread = 0) {
  std::uniform_real_distribution<double> factor(0.5, 2);
  const int from = static_cast<int>(random() % 4) == 0 ? static_cast<int>(random() % 10) : 0;
  const int to = static_cast<int>(random() % 4) == 0 ? 12 + static_cast<int>(random() % 8) : 24;
  double seconds = 1e-6 * factor(random);
  std::vector<Point> points;
  for (int power = from; power <= to; ++power) {
    points.push_back(point_at(Bytes{1} << power, seconds, spread));
    seconds *= 0.4 + factor(random);
  }
  return Cost(points);
}

double best_at(const std::vector<Cost>& costs, double bytes) {
  double best = INFINITY;
  for (const Cost& cost : costs) best = std::min(best, cost.seconds(bytes));
  return best;
}

class EnvelopeOfNoise : public ::testing::TestWithParam<double> {};

TEST_P(EnvelopeOfNoise, IsWithinTheToleranceEverywhere) {
  // The tolerance: what the intervals leave open, and 0.1 % since boundaries are rounded to whole bytes.
  const double allowed = 1.041 + 1.42 * GetParam();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Cost> costs;
    for (std::size_t i = 0; i < 1 + seed % 9; ++i) costs.push_back(random_cost(random, GetParam()));
    const std::vector<Segment> segments = envelope(costs);
    ASSERT_FALSE(segments.empty());
    for (const Segment& segment : segments)
      for (int i = 0; i <= 40; ++i) {
        const double size =
            static_cast<double>(segment.from) + std::floor(static_cast<double>(segment.to - segment.from) * i / 40);
        EXPECT_LE(costs[segment.choice].seconds(size), allowed * best_at(costs, size))
            << "seed " << seed << " " << size;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Spreads, EnvelopeOfNoise, ::testing::Values(0.0, 0.01, 0.05));

// No single size can tell the two apart, but the second is a little slower at all of them.
TEST(Envelope, ManySmallHintsDecide) {
  std::vector<Point> slower, faster;
  for (int power = 0; power < 20; ++power) {
    const double noise = power % 3 == 0 ? 0.98 : 1.0;
    slower.push_back(point_at(Bytes{1} << power, 1.06 * noise, 0.08));
    faster.push_back(point_at(Bytes{1} << power, 1.0 / noise * (power == 7 ? 1.1 : 1), 0.08));
  }
  const std::vector<Segment> segments = envelope(std::vector<Cost>{Cost(slower), Cost(faster)});
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].choice, 1u);
}

TEST(Envelope, SegmentsJoinWithoutGapOrOverlapWhereSomethingIsKnown) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<Cost> costs = {random_cost(random), random_cost(random), random_cost(random)};
    const std::vector<Segment> segments = envelope(costs);
    for (std::size_t i = 0; i < segments.size(); ++i) {
      EXPECT_LE(segments[i].from, segments[i].to);
      if (i == 0) continue;
      EXPECT_GT(segments[i].from, segments[i - 1].to);
      for (Bytes gap = segments[i - 1].to + 1; gap < segments[i].from && gap < segments[i - 1].to + 100; ++gap)
        EXPECT_EQ(best_at(costs, static_cast<double>(gap)), INFINITY);
    }
  }
}

TEST(Envelope, EmptyCostsGiveNothing) {
  EXPECT_TRUE(envelope(std::vector<Cost>{}).empty());
  EXPECT_TRUE(envelope(std::vector<Cost>(3)).empty());
  const std::vector<Cost> one_of_two = {Cost(), Cost({point_at(8, 1e-6, 0)})};
  ASSERT_EQ(envelope(one_of_two).size(), 1u);
  EXPECT_EQ(envelope(one_of_two)[0].choice, 1u);
}

}  // namespace
}  // namespace waywiser
