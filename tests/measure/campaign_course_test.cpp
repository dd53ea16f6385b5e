// In which order a campaign measures, what it leaves out, and where it goes on.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/measure/made_up_meter.hpp"
#include "tests/measure/two_links.hpp"
#include "waywiser/measure/campaign.hpp"

namespace waywiser {
namespace {

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
