// What a campaign measures of each path.
#include "waywiser/measure/campaign.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/measure/made_up_meter.hpp"
#include "tests/measure/two_links.hpp"

namespace waywiser {
namespace {

TEST(Campaign, EveryPathIsMeasuredAndVerifiedAtEverySize) {
  MadeUpMeter meter = two_links();
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  ASSERT_EQ(profile.series.size(), 2u);
  for (const Series& series : profile.series) {
    EXPECT_GE(series.points.size(), 25u);
    for (const Point& point : series.points) {
      EXPECT_TRUE(point.verified);
      EXPECT_GE(point.samples, 3);
      EXPECT_NEAR(point.seconds, meter.links[label(series.path)].seconds(static_cast<double>(point.bytes)), 1e-12);
    }
  }
  EXPECT_EQ(profile.first_use.size(), 2u);
  EXPECT_TRUE(profile.simulated);
  EXPECT_FALSE(profile.state["interrupted"].get<bool>());
}

TEST(Campaign, SizesAroundASwitchAreAdded) {
  MadeUpMeter meter = two_links();
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  const auto& points = series_of(profile, "a")->points;  // the switch is at 9.09 K
  EXPECT_TRUE(std::any_of(points.begin(), points.end(),
                          [](const Point& point) { return point.bytes > 8192 && point.bytes < 16384; }));
}

TEST(Campaign, IsTheSameForTheSameSeed) {
  MadeUpMeter first = two_links(0.05), second = two_links(0.05);
  const std::string a = to_json(run_campaign(two_paths(), first, short_options(), nullptr, {})).dump();
  EXPECT_EQ(a, to_json(run_campaign(two_paths(), second, short_options(), nullptr, {})).dump());
}

TEST(Campaign, NoiseGivesMoreSamplesAndTheTrueMedian) {
  MadeUpMeter calm = two_links(), noisy = two_links(0.1);
  const Profile few = run_campaign(two_paths(), calm, short_options(), nullptr, {});
  const Profile many = run_campaign(two_paths(), noisy, short_options(), nullptr, {});
  EXPECT_GT(series_of(many, "a")->points[0].samples, series_of(few, "a")->points[0].samples);
  for (const Point& point : series_of(many, "a")->points)
    EXPECT_NEAR(point.seconds, noisy.links["a"].seconds(static_cast<double>(point.bytes)), 0.08 * point.seconds);
}

TEST(Campaign, ALyingPathIsRejected) {
  MadeUpMeter meter = two_links();
  meter.links["liar"] = {line(1e-9, 900e9), INFINITY, INFINITY, 318e9};
  const Profile profile =
      run_campaign({subject_of({{gpu_path("liar"), {}}, {gpu_path("a"), {}}})}, meter, short_options(), nullptr, {});
  EXPECT_EQ(series_of(profile, "liar"), nullptr);
  EXPECT_NE(series_of(profile, "a"), nullptr);
  ASSERT_EQ(profile.rejected.size(), 1u);
  EXPECT_EQ(profile.rejected[0].bytes, 0u);
  EXPECT_NE(profile.rejected[0].reason.find("GB/s is above the limit of 318 GB/s (made up): the measurement is wrong"),
            std::string::npos)
      << profile.rejected[0].reason;
}

TEST(Campaign, APathThatFailsIsRejectedFromThatSizeOn) {
  for (const bool corrupt : {false, true}) {
    MadeUpMeter meter = two_links();
    (corrupt ? meter.links["b"].corrupts_from : meter.links["b"].fails_from) = 1 << 20;
    const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
    EXPECT_LT(series_of(profile, "b")->points.back().bytes, Bytes{1} << 20);
    EXPECT_GE(series_of(profile, "b")->points.back().bytes, 9 * (Bytes{1} << 20) / 10);  // the edge is looked for
    EXPECT_EQ(series_of(profile, "a")->points.back().bytes, Bytes{1} << 24);
    ASSERT_FALSE(profile.rejected.empty());
    EXPECT_EQ(profile.rejected[0].bytes, Bytes{1} << 20);
    EXPECT_NE(profile.rejected[0].reason.find(corrupt ? "wrong" : "made to fail"), std::string::npos);
  }
}

TEST(Campaign, APathWithTwoModesIsNotedAndKeepsItsMedian) {
  MadeUpMeter meter = two_links();
  int calls = 0;
  meter.links["b"].seconds = [&calls](double bytes) { return (++calls % 3 == 0 ? 4 : 1) * (1e-5 + bytes / 1e11); };
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  for (const Point& point : series_of(profile, "b")->points)
    EXPECT_NEAR(point.seconds, 1e-5 + static_cast<double>(point.bytes) / 1e11, 1e-12) << point.bytes;
  EXPECT_NE(profile.state["notes"].dump().find("gpu0>gpu1 b latency"), std::string::npos);
  EXPECT_NE(profile.state["notes"].dump().find("two modes"), std::string::npos);
}

TEST(Campaign, ADisturbedSizeIsMeasuredAgain) {
  MadeUpMeter meter = two_links();
  int calls = 0;  // disturbed for as long as the first comparison at this size lasts
  meter.links["a"].seconds = [&calls](double bytes) {
    const bool disturbed = bytes == 4096 && ++calls <= 12;
    return (disturbed ? 50 : 1) * (1e-6 + bytes / 1e9);
  };
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  for (const Point& point : series_of(profile, "a")->points)
    EXPECT_NEAR(point.seconds, 1e-6 + static_cast<double>(point.bytes) / 1e9, 1e-12) << point.bytes;
}

TEST(Campaign, WhatWasDisturbedIsMarkedAndMeasuredAgain) {
  MadeUpMeter meter = two_links();
  meter.disturbed = [](Bytes bytes) { return bytes == 1024; };
  const Profile marked = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  for (const Point& point : series_of(marked, "a")->points) EXPECT_EQ(point.calm(), point.bytes != 1024);
  EXPECT_NE(marked.state["notes"].dump().find("samples were disturbed: made to be disturbed"), std::string::npos);
  const Profile read = profile_from_json(to_json(marked), "profile");
  meter.disturbed = nullptr;
  meter.taken.clear();
  const Profile calm = run_campaign(two_paths(), meter, short_options(), &read, {});
  for (const Point& point : series_of(calm, "a")->points) EXPECT_EQ(point.disturbed, 0);
  EXPECT_GT(meter.taken["a latency 1024"], 0);
  EXPECT_EQ(meter.taken["a latency 4096"], 0);
}

TEST(Campaign, ACalmLookTakesThePlaceOfADisturbedOne) {
  MadeUpMeter meter = two_links();
  int looks = 0;
  meter.disturbed = [&](Bytes bytes) { return bytes == 1024 && ++looks < 20; };
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  for (const Point& point : series_of(profile, "a")->points) EXPECT_TRUE(point.calm());
}

TEST(Campaign, WhatIsTheSameAsASmallerParameterIsNotMeasured) {
  MadeUpMeter meter = two_links();
  meter.links["b"].smallest = 1 << 14;
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  EXPECT_EQ(series_of(profile, "b")->points.front().bytes, Bytes{1} << 14);
  EXPECT_EQ(series_of(profile, "a")->points.front().bytes, 1u);
}

// A neighbour takes the CPU for as long as the grid needs for some sizes; later looks find the true times.
TEST(Campaign, ADisturbanceOfManySizesIsLookedThrough) {
  MadeUpMeter meter = two_links(0.02);
  const auto calm = meter.links["b"].seconds;
  meter.links["b"].seconds = [&meter, calm](double bytes) {
    return (meter.now() > 0.02 && meter.now() < 0.05 ? 1.4 : 1) * calm(bytes);
  };
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  for (const Point& point : series_of(profile, "b")->points)
    EXPECT_NEAR(point.seconds, calm(static_cast<double>(point.bytes)), 0.05 * point.seconds);
}

TEST(Campaign, UnavailableIsAnAnswer) {
  MadeUpMeter meter = two_links();
  meter.missing = {"b"};
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  EXPECT_EQ(profile.series.size(), 1u);
  ASSERT_EQ(profile.unavailable.size(), 1u);
  EXPECT_EQ(profile.unavailable[0].reason, "not on this machine");
}

}  // namespace
}  // namespace waywiser
