#include "waywiser/measure/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace waywiser {
namespace {

TEST(Statistics, MedianAndQuantiles) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  const std::vector<double> sorted = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_DOUBLE_EQ(quantile(sorted, 0), 0);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.99), 9.9);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1), 10);
}

// Ranks from tables of the sign test: n = 10 gives the 2nd and the 9th, n = 20 the 6th and the 15th.
TEST(Statistics, IntervalOfTheMedianHasTheRanksOfTheSignTest) {
  const auto interval = [](std::size_t count) {
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 1);
    return summarize(values).interval;
  };
  EXPECT_EQ(interval(1).low, 1);
  EXPECT_EQ(interval(5).low, 1);
  EXPECT_EQ(interval(5).high, 5);
  EXPECT_EQ(interval(10).low, 2);
  EXPECT_EQ(interval(10).high, 9);
  EXPECT_EQ(interval(20).low, 6);
  EXPECT_EQ(interval(20).high, 15);
  EXPECT_NEAR(interval(5000).low, 2430, 3);
}

TEST(Statistics, IntervalCoversTheMedianOftenEnough) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> times(0, 1);  // its median is 1
  int covered = 0;
  for (int run = 0; run < 1000; ++run) {
    std::vector<double> samples(15);
    for (double& sample : samples) sample = times(random);
    const Summary summary = summarize(samples);
    covered += summary.interval.low <= 1 && 1 <= summary.interval.high;
    EXPECT_LE(summary.interval.low, summary.median);
    EXPECT_GE(summary.interval.high, summary.median);
  }
  EXPECT_GE(covered, 940);
}

TEST(Statistics, PairedRatioCancelsDrift) {
  std::vector<double> a, b;
  for (int i = 0; i < 20; ++i) {
    const double drift = 1 + i * 0.5;
    a.push_back(1.1 * drift);
    b.push_back(drift);
  }
  const Summary ratio = paired_ratio(a, b);
  EXPECT_NEAR(ratio.median, 1.1, 1e-9);
  EXPECT_NEAR(ratio.interval.high - ratio.interval.low, 0, 1e-9);
}

TEST(Statistics, NotesSayWhatIsThereAndNothingElse) {
  std::vector<double> calm, drifting, two_modes;
  for (int i = 0; i < 30; ++i) {
    const double noise = 0.01 * ((i * 7) % 5);
    calm.push_back(1 + noise);
    drifting.push_back((i < 15 ? 1 : 1.3) + noise);
    two_modes.push_back((i % 3 == 0 ? 2 : 1) + noise);
  }
  EXPECT_FALSE(drift_note(calm));
  EXPECT_FALSE(bimodality_note(calm));
  EXPECT_TRUE(drift_note(drifting));
  EXPECT_FALSE(drift_note(two_modes));
  EXPECT_TRUE(bimodality_note(two_modes));
}

}  // namespace
}  // namespace waywiser
