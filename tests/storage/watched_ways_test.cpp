#include "waywiser/storage/watched_ways.hpp"

#include <gtest/gtest.h>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Bytes megabyte = 1'000'000;

// 1 ms for 1 MB and 8 ms for 10 MB by the first way.
WatchedWays three() {
  return WatchedWays({{parse_way("a"), 1}, {parse_way("b"), 1.5}, {parse_way("c"), 4}},
                     {{megabyte, 1e-3}, {10 * megabyte, 8e-3}});
}

std::string way_after(WatchedWays& ways, Bytes bytes, Seconds each, int calls) {
  for (int i = 0; i < calls; ++i) ways.took(bytes, each);
  return ways.way().name;
}

TEST(WatchedWays, KeepTheFirstWhileItIsAsFastAsThePlanSays) {
  WatchedWays ways = three();
  EXPECT_EQ(way_after(ways, megabyte, 1e-3, 5000), "a");
  EXPECT_EQ(way_after(ways, megabyte, 2.9e-3, 5000), "a")
      << "the next one takes 1.5 of its time, and that twice is more";
}

TEST(WatchedWays, TakeTheNextOneAfterASecondOfCallsThatAreTooSlow) {
  WatchedWays ways = three();
  EXPECT_EQ(way_after(ways, megabyte, 10e-3, 99), "a");
  const WatchedWays::Slow slow = ways.took(megabyte, 11e-3);
  ASSERT_NE(slow.way, nullptr);
  EXPECT_EQ(slow.way->name, "a");
  EXPECT_NEAR(slow.times, 10, 0.1);
  EXPECT_EQ(ways.way().name, "b");
}

TEST(WatchedWays, OneLongCallIsEnough) {
  WatchedWays ways = three();
  EXPECT_EQ(way_after(ways, 100 * megabyte, 5, 1), "b");  // 80 ms by the plan's rate
}

TEST(WatchedWays, AllThatAreTooSlowEndWithTheFastestOneThatWasSeen) {
  WatchedWays ways = three();
  EXPECT_EQ(way_after(ways, megabyte, 20e-3, 51), "b");
  EXPECT_EQ(way_after(ways, megabyte, 50e-3, 21), "c");
  EXPECT_EQ(way_after(ways, megabyte, 40e-3, 26), "a");
  EXPECT_EQ(way_after(ways, megabyte, 1, 1000), "a") << "there is nothing else to try";
}

TEST(WatchedWays, AFasterNextOneStays) {
  WatchedWays ways = three();
  EXPECT_EQ(way_after(ways, megabyte, 20e-3, 51), "b");
  EXPECT_EQ(way_after(ways, megabyte, 1.5e-3, 5000), "b");
}

TEST(WatchedWays, BetweenMeasuredSizesTheTimeIsLinearAndAboveThemTheRateStays) {
  for (const auto& [bytes, planned] :
       {std::pair<Bytes, Seconds>{1000, 1e-3}, {5'500'000, 4.5e-3}, {20'000'000, 16e-3}}) {
    WatchedWays slow = three(), good = three();
    EXPECT_EQ(way_after(slow, bytes, 3.1 * planned, 2000), "b") << bytes;
    EXPECT_EQ(way_after(good, bytes, 2.9 * planned, 2000), "a") << bytes;
  }
}

TEST(WatchedWays, WithoutExpectedTimesOrWithOneWayNothingIsJudged) {
  WatchedWays without({{parse_way("a"), 1}, {parse_way("b"), 1.1}});
  EXPECT_EQ(way_after(without, megabyte, 1, 100), "a");
  WatchedWays only({{parse_way("a"), 1}}, {{megabyte, 1e-3}});
  EXPECT_EQ(way_after(only, megabyte, 1, 100), "a");
  WatchedWays unknown({{parse_way("a"), 1}, {parse_way("b"), 0}}, {{megabyte, 1e-3}});
  EXPECT_EQ(way_after(unknown, megabyte, 1, 100), "a");
}

TEST(WatchedWays, PatienceEndsWhenACallThatHasNotEndedIsTooSlow) {
  for (const Bytes bytes : {megabyte, 10 * megabyte, 1000 * megabyte}) {
    WatchedWays ways = three();
    const std::optional<Seconds> patience = ways.patience(bytes);
    ASSERT_TRUE(patience);
    EXPECT_NEAR(*patience, bytes == 1000 * megabyte ? 3 * 0.8 : 1, 0.01);
    EXPECT_EQ(way_after(ways, bytes, *patience, 1), "b");
  }
  WatchedWays ways = three();
  way_after(ways, megabyte, 2e-3, 400);
  EXPECT_NEAR(ways.patience(megabyte).value_or(0), 0.4, 0.01) << "three times 0.4 s, of which 0.8 s are over";
  EXPECT_FALSE(WatchedWays({{parse_way("a"), 1}}, {{megabyte, 1e-3}}).patience(megabyte)) << "there is no other way";
}

TEST(WatchedWays, AFewPartsOfACallCountAsSixtyFour) {
  WatchedWays few = three(), many = three();
  EXPECT_EQ(few.patience(megabyte, 2), few.patience(megabyte, 64));
  few.took(megabyte, 1.1, 2);
  EXPECT_EQ(few.way().name, "b") << "64 would take 64 ms";
  many.took(megabyte, 1.1, 640);
  EXPECT_EQ(many.way().name, "a");
}

TEST(WatchedWays, SectionsTakeHalfASecondAtMost) {
  const WatchedWays fast = three();
  EXPECT_EQ(fast.section(1 << 30), Bytes{512} << 20);
  EXPECT_EQ(fast.section(megabyte), megabyte);
  const WatchedWays slow({{parse_way("a"), 1}, {parse_way("b"), 1.5}}, {{megabyte, 0.1}});
  EXPECT_EQ(slow.section(1 << 30), Bytes{4} << 20);
  EXPECT_EQ(slow.section(megabyte, 1000), 64u);
  EXPECT_EQ(fast.section(megabyte, 1000), 500u);
  EXPECT_EQ(WatchedWays({{parse_way("a"), 1}}).section(megabyte, 1000), 1000u) << "nothing is judged";
}

}  // namespace
}  // namespace waywiser
