#include "waywiser/measure/campaign.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/measure/made_up_meter.hpp"

namespace waywiser {
namespace {

using made_up::gpu_path;
using made_up::MadeUpMeter;
using made_up::subject_of;

std::function<double(double)> line(double start, double rate) {
  return [=](double bytes) { return start + bytes / rate; };
}

CampaignOptions short_options() {
  CampaignOptions options;
  options.operations = {Operation::latency};
  options.max_bytes = 1 << 24;
  options.budget_seconds = 1000;
  return options;
}

const Series* series_of(const Profile& profile, const std::string& text) {
  for (const Series& series : profile.series)
    if (label(series.path) == text) return &series;
  return nullptr;
}

MadeUpMeter two_links(double noise = 0) {
  MadeUpMeter meter(noise);
  meter.links["a"] = {line(1e-6, 1e9)};
  meter.links["b"] = {line(1e-5, 1e11)};
  return meter;
}

std::vector<Subject> two_paths() { return {subject_of({{gpu_path("a"), {}}, {gpu_path("b"), {}}})}; }

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

TEST(Campaign, TheBudgetIsKept) {
  for (const double budget : {0.05, 0.5, 5.0}) {
    MadeUpMeter meter = two_links(0.2);
    CampaignOptions options = short_options();
    options.max_bytes = 1 << 30;
    options.budget_seconds = budget;
    const Profile profile = run_campaign(two_paths(), meter, options, nullptr, {});
    EXPECT_LE(meter.now(), budget + 0.2) << budget;
    // Coarse first: even a short budget leaves sizes from small to large.
    ASSERT_NE(series_of(profile, "a"), nullptr);
    EXPECT_EQ(series_of(profile, "a")->points.front().bytes, 1u);
    if (budget >= 0.5) {
      EXPECT_GE(series_of(profile, "a")->points.back().bytes, Bytes{1} << 16);
    }
  }
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

TEST(Campaign, HopelessPathsAreLeftOutOfLargeSizesAndAroundSwitches) {
  MadeUpMeter meter = two_links();
  meter.links["slow"] = {line(1e-4, 1e8)};
  CampaignOptions options = short_options();
  options.max_bytes = 1 << 28;
  auto families = two_paths();
  families[0].families.push_back({gpu_path("slow"), {}});
  const Profile profile = run_campaign(families, meter, options, nullptr, {});
  EXPECT_EQ(series_of(profile, "b")->points.back().bytes, Bytes{1} << 28);
  EXPECT_LT(series_of(profile, "slow")->points.back().bytes, Bytes{64} << 20);
  EXPECT_LT(series_of(profile, "slow")->points.size(), series_of(profile, "a")->points.size());
}

TEST(Campaign, TheLargestSizeComesBeforeTheFineGrid) {
  MadeUpMeter meter = two_links();
  CampaignOptions options = short_options();
  options.max_bytes = 1 << 30;
  options.budget_seconds = 5;
  const Profile profile = run_campaign(two_paths(), meter, options, nullptr, {});
  EXPECT_EQ(series_of(profile, "b")->points.back().bytes, Bytes{1} << 30);
}

TEST(Campaign, UnavailableIsAnAnswer) {
  MadeUpMeter meter = two_links();
  meter.missing = {"b"};
  const Profile profile = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  EXPECT_EQ(profile.series.size(), 1u);
  ASSERT_EQ(profile.unavailable.size(), 1u);
  EXPECT_EQ(profile.unavailable[0].reason, "not on this machine");
}

// Chunks: small ones are good for small messages, large ones for large messages; 512K is never best.
std::vector<Subject> with_chunks(MadeUpMeter& meter) {
  const Family family{gpu_path("staged"), {{"chunk", {"64K", "512K", "4M"}}, {"depth", {"1", "2", "4"}}}};
  for (const Path& path : expand(family)) {
    const double chunk = static_cast<double>(path.bytes("chunk", 1, 1 << 30));
    const double depth = static_cast<double>(path.integer("depth", 1, 8));
    meter.links[label(path)] = {[=](double bytes) {
      const double slow = chunk == 524288 ? 1.5 : 1;
      return slow * (1e-6 * (1 + 3 / depth) + std::min(bytes, chunk) / 1e10 + bytes / chunk * 2e-6 + bytes / 2e10);
    }};
  }
  return {subject_of({family})};
}

TEST(Campaign, TheSearchKeepsTheFewParametersThatWinSomewhere) {
  MadeUpMeter meter(0.02);
  const std::vector<Subject> subjects = with_chunks(meter);
  const Profile profile = run_campaign(subjects, meter, short_options(), nullptr, {});
  EXPECT_LE(profile.series.size(), 4u);
  for (const double bytes : {4096.0, 65536.0, 1048576.0, 16777216.0}) {
    double best = INFINITY, kept = INFINITY;
    for (const auto& [text, link] : meter.links) {
      best = std::min(best, link.seconds(bytes));
      if (series_of(profile, text) != nullptr) kept = std::min(kept, link.seconds(bytes));
    }
    EXPECT_LE(kept, 1.07 * best) << bytes;
  }
  for (const Series& series : profile.series) EXPECT_EQ(label(series.path).find("512K"), std::string::npos);
  EXPECT_FALSE(profile.searched.empty());
  for (const Series& lost : profile.searched) EXPECT_LE(lost.points.size(), 5u);
}

TEST(Campaign, ResumeMeasuresOnlyWhatIsMissing) {
  MadeUpMeter meter = two_links();
  CampaignOptions options = short_options();
  options.max_bytes = 1 << 16;
  const Profile before = run_campaign(two_paths(), meter, options, nullptr, {});
  MadeUpMeter again = two_links();
  EXPECT_EQ(run_campaign(two_paths(), again, options, &before, {}).series.size(), 2u);
  EXPECT_TRUE(again.taken.empty());
  options.max_bytes = 1 << 17;
  const Profile after = run_campaign(two_paths(), again, options, &before, {});
  EXPECT_EQ(again.taken.size(), 2u);
  for (const auto& [what, count] : again.taken) EXPECT_NE(what.find(" 131072"), std::string::npos) << what;
  EXPECT_EQ(series_of(after, "a")->points.size(), series_of(before, "a")->points.size() + 1);
}

TEST(Campaign, ResumeDoesNotSearchAgain) {
  MadeUpMeter meter, again;
  const std::vector<Subject> subjects = with_chunks(meter);
  with_chunks(again);
  const Profile before = run_campaign(subjects, meter, short_options(), nullptr, {});
  const Profile after = run_campaign(subjects, again, short_options(), &before, {});
  EXPECT_TRUE(again.taken.empty());
  EXPECT_EQ(after.series.size(), before.series.size());
  EXPECT_EQ(after.searched.size(), before.searched.size());
}

TEST(Campaign, StoppingKeepsWhatWasMeasured) {
  MadeUpMeter meter = two_links(0.02);
  meter.fixed_cost = 0.01;
  int calls = 0;
  const Profile part =
      run_campaign(two_paths(), meter, short_options(), nullptr, [&](const Progress&) { return ++calls < 30; });
  EXPECT_TRUE(part.state["interrupted"].get<bool>());
  ASSERT_FALSE(part.series.empty());
  MadeUpMeter again = two_links(0.02);
  const Profile whole = run_campaign(two_paths(), again, short_options(), &part, {});
  EXPECT_FALSE(whole.state["interrupted"].get<bool>());
  for (const Point& point : part.series[0].points)
    EXPECT_EQ(again.taken.count("a latency " + std::to_string(point.bytes)), 0u) << point.bytes;
  EXPECT_GT(whole.series[0].points.size(), part.series[0].points.size());
}

TEST(Campaign, PairsThatWereNotAskedForStay) {
  MadeUpMeter meter = two_links();
  const Profile before = run_campaign(two_paths(), meter, short_options(), nullptr, {});
  Subject other = subject_of({{gpu_path("a"), {}}});
  other.pair_class.members = {{host(0), gpu(0)}};
  other.families[0].base.source = host(0);
  other.families[0].base.destination = gpu(0);
  const Profile after = run_campaign({other}, meter, short_options(), &before, {});
  EXPECT_EQ(after.classes.size(), 2u);
  EXPECT_EQ(after.series.size(), 3u);
}

TEST(Campaign, AllPairsAtOnceWhereThereAreSeveral) {
  for (const int processes : {1, 2})
    for (const std::size_t members : {1u, 2u}) {
      MadeUpMeter meter = two_links();
      std::vector<Subject> subjects = two_paths();
      subjects[0].pair_class.processes = processes;
      if (members == 2) subjects[0].pair_class.members.emplace_back(gpu(1), gpu(0));
      for (Family& family : subjects[0].families) family.base.processes = processes;
      CampaignOptions options = short_options();
      options.operations = {Operation::streaming, Operation::loaded};
      std::map<Operation, int> pairs;
      for (const Series& series : run_campaign(subjects, meter, options, nullptr, {}).series)
        pairs[series.operation] = series.pairs;
      const std::map<Operation, int> alone{{Operation::streaming, 0}};
      const std::map<Operation, int> both{{Operation::streaming, 0}, {Operation::loaded, 12}};
      EXPECT_EQ(pairs, members == 1 ? alone : both) << processes;
    }
}

// Many processes start for `loaded`: what a short budget is for has been measured by then, at every size.
TEST(Campaign, WhatTakesTheBudgetComesLast) {
  MadeUpMeter meter = two_links();
  meter.loaded_cost = 50;
  std::vector<Subject> subjects = two_paths();
  subjects[0].pair_class.members.emplace_back(gpu(1), gpu(0));
  CampaignOptions options = short_options();
  options.operations = {Operation::latency, Operation::loaded};
  options.budget_seconds = 100;
  std::map<Operation, std::size_t> points;
  for (const Series& series : run_campaign(subjects, meter, options, nullptr, {}).series)
    points[series.operation] = std::max(points[series.operation], series.points.size());
  EXPECT_GE(points[Operation::latency], 25u);
  EXPECT_LE(points[Operation::loaded], 2u);
}

TEST(Campaign, ProgressCountsUpToItsTotal) {
  MadeUpMeter meter = two_links();
  meter.fixed_cost = 0.01;
  Progress last;
  run_campaign(two_paths(), meter, short_options(), nullptr, [&](const Progress& progress) {
    EXPECT_GE(progress.done, last.done);
    EXPECT_LE(progress.done, progress.total);
    EXPECT_GE(progress.seconds_left, 0);
    EXPECT_FALSE(progress.label.empty() && progress.done > 0);
    last = progress;
    return true;
  });
  EXPECT_GT(last.done, 0);
}

}  // namespace
}  // namespace waywiser
