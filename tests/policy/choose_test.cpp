#include "waywiser/policy/choose.hpp"

#include <gtest/gtest.h>

#include "tests/policy/made_up_links.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {
namespace {

using made_up::cliff;
using made_up::line;
using made_up::made_up_profile;
using made_up::MadeUpLink;

const MechanismOrder order = {"a", "b", "c", "d"};

const PlanRow* row_at(const Chooser& chooser, Bytes bytes) {
  return chooser.choose(gpu(0), gpu(1), 1, Operation::latency, bytes);
}

double true_time(const std::vector<MadeUpLink>& links, const std::string& mechanism, double bytes) {
  for (const MadeUpLink& link : links)
    if (link.mechanism == mechanism && bytes < link.fails_from) return link.seconds(bytes);
  return INFINITY;
}

double best_time(const std::vector<MadeUpLink>& links, double bytes) {
  double best = INFINITY;
  for (const MadeUpLink& link : links) best = std::min(best, true_time(links, link.mechanism, bytes));
  return best;
}

struct LinkTable {
  const char* name;
  std::vector<MadeUpLink> links;
  double noise;
  bool cliff = false;
};

class ChosenCost : public ::testing::TestWithParam<LinkTable> {};

// The choice costs at most 1.05 of the best (plus the noise of its points), at measured sizes and half way between.
// Where a cliff lies, or a path begins to fail, between two measured sizes only measuring can tell; that is the
// campaign's part.
TEST_P(ChosenCost, IsCloseToTheBest) {
  const LinkTable& table = GetParam();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Chooser chooser(choose(made_up_profile(table.links, table.noise, seed * 100), order));
    for (Bytes bytes = 1; bytes <= Bytes{1} << 29; bytes *= 2)
      for (const Bytes size : {bytes, bytes + (table.cliff ? 0 : bytes / 2)}) {
        const PlanRow* row = row_at(chooser, size);
        ASSERT_NE(row, nullptr) << size;
        const double cost = true_time(table.links, row->way().name, static_cast<double>(size));
        const double allowed = 1.05 * (1 + table.noise) / (1 - table.noise) + 1e-9;
        EXPECT_LE(cost, allowed * best_time(table.links, static_cast<double>(size)))
            << table.name << " " << size << " " << row->way().name << " seed " << seed;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    MadeUpLinks, ChosenCost,
    ::testing::Values(
        LinkTable{"latency against bandwidth", {{"a", line(1e-6, 1e9)}, {"b", line(1e-5, 1e11)}}, 0},
        LinkTable{"three", {{"a", line(1e-6, 1e9)}, {"b", line(3e-6, 1e10)}, {"c", line(1e-5, 1e11)}}, 0},
        LinkTable{"cliff at a power of two",
                  {{"a", cliff(line(1e-6, 1e11), 1 << 20, line(1e-3, 1e9))}, {"b", line(1e-5, 1e10)}},
                  0,
                  true},
        LinkTable{"fails from 1M on", {{"a", line(1e-6, 1e11), 1 << 20}, {"b", line(1e-5, 1e10)}}, 0, true},
        LinkTable{"noise of 5 %", {{"a", line(1e-6, 1e9)}, {"b", line(1e-5, 1e11)}, {"c", line(1.05e-5, 1e11)}}, 0.05}),
    [](const auto& test) {
      std::string text = test.param.name;
      for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return text;
    });

TEST(Choose, WhatWasNeverMeasuredServesNoRow) {
  Profile profile = made_up_profile({{"ucx", line(1e-6, 1e9)}, {"tls", line(1e-5, 1e9)}});
  profile.series[1].points.clear();
  const Plan plan = choose(profile, mechanism_order());
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_FALSE(plan.rows[0].key.encrypted);
}

TEST(Choose, CollectivesGetRowsOfTheirOwn) {
  Profile profile = made_up_profile({{"a", line(1e-6, 1e9)}});
  const auto add = [&](const char* memory, int ranks, const char* way, const made_up::TimeOf& seconds) {
    profile.collectives.push_back(
        {"all_reduce", memory, ranks, way, made_up::made_up_series({way, seconds}, 0, 1, Bytes{1} << 20).points});
  };
  add("gpu", 4, "LL", line(2e-6, 1e10));
  add("gpu", 4, "nccl", line(1e-5, 1e11));
  add("host", 2, "ring", line(1e-5, 1e11));
  const Profile read = profile_from_json(to_json(profile), "profile");
  const Chooser chooser(plan_from_json(to_json(choose(read, order)), "plan"));
  const auto way = [&](const char* memory, int ranks, Bytes bytes) {
    const PlannedWays<Way> ways(&chooser, {"all_reduce", memory, ranks},
                                [](const Way& each) { return std::optional(each); });
    const Way* found = ways.find(bytes, [](const Way&) { return true; }, [](const Way&) { return ""; });
    return found == nullptr ? std::string("none") : found->name;
  };
  EXPECT_EQ(way("gpu", 4, 0), "LL");
  EXPECT_EQ(way("gpu", 4, 1 << 19), "nccl");
  EXPECT_EQ(way("gpu", 4, Bytes{2} << 20), "nccl");
  EXPECT_EQ(way("gpu", 4, (Bytes{2} << 20) + 1), "none") << "more than twice of what was measured";
  EXPECT_EQ(way("host", 2, 100), "ring");
  EXPECT_EQ(way("host", 2, Bytes{1} << 40), "ring");
  EXPECT_EQ(way("gpu", 2, 100), "none");
  const PlanRow& row = *chooser.row_of({"all_reduce", "gpu", 4}, 0);
  EXPECT_EQ(text(row.way()), "LL");
  ASSERT_NE(row.runner_up(), nullptr);
  EXPECT_EQ(text(row.runner_up()->way), "nccl");
  EXPECT_GT(row.runner_up()->ratio, 1);
  EXPECT_FALSE(row.expected.empty());
}

TEST(Choose, FilesWithoutCollectivesAreRead) {
  const Json profile = to_json(made_up_profile({{"a", line(1e-6, 1e9)}}));
  EXPECT_FALSE(profile.contains("collectives"));
  EXPECT_TRUE(profile_from_json(profile, "profile").collectives.empty());
  EXPECT_TRUE(plan_from_json(to_json(choose(made_up_profile({}), order)), "plan").rows.empty());
}

TEST(Choose, OldNamesOfAlgorithmsAreRead) {
  Profile profile = made_up_profile({{"a", line(1e-6, 1e9)}});
  const auto add = [&](const char* way, double start, double rate) {
    const made_up::TimeOf seconds = line(start, rate);
    profile.collectives.push_back(
        {"all_reduce", "gpu", 4, way, made_up::made_up_series({way, seconds}, 0, 1, Bytes{1} << 24).points});
  };
  add("packets", 1e-6, 1e9);
  add("lines", 2e-6, 1e10);
  add("two_shot_lines(blocks=16,threads=512)", 1e-5, 1e11);
  const Json old_profile = to_json(profile);
  EXPECT_EQ(old_profile["collectives"][0]["way"], "packets") << "what was written then";
  const Profile read = profile_from_json(old_profile, "profile");
  const std::vector<std::string> today{"LL", "LL128", "two_shot_LL128(blocks=16,threads=512)"};
  ASSERT_EQ(read.collectives.size(), today.size());
  for (std::size_t i = 0; i < today.size(); ++i) EXPECT_EQ(read.collectives[i].way, today[i]);
}

TEST(Choose, RangesCoverAllSizesOnce) {
  const Plan plan =
      choose(made_up_profile({{"a", line(1e-6, 1e9)}, {"b", line(3e-6, 1e10)}, {"c", line(1e-5, 1e11)}}), order);
  ASSERT_EQ(plan.rows.size(), 3u);
  EXPECT_EQ(plan.rows.front().from_bytes, 0u);
  for (std::size_t i = 1; i < plan.rows.size(); ++i) EXPECT_EQ(plan.rows[i].from_bytes, plan.rows[i - 1].to_bytes + 1);
  EXPECT_EQ(plan.rows.back().to_bytes, static_cast<Bytes>(INT64_MAX));
}

TEST(Choose, BoundaryIsTheCrossing) {
  // 1e-6 + n/1e9 = 1e-5 + n/1e10 at n = 1e4.
  const Plan plan = choose(made_up_profile({{"a", line(1e-6, 1e9)}, {"b", line(1e-5, 1e10)}}), order);
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_NEAR(static_cast<double>(plan.rows[0].to_bytes), 1e4, 2);
}

TEST(Choose, EqualsGoToTheEarlierRow) {
  for (const double factor : {0.99, 1.0, 1.01}) {
    Profile profile = made_up_profile({{"b", line(factor * 1e-6, 1e10 / factor)}, {"a", line(1e-6, 1e10)}});
    for (Series& series : profile.series)
      for (Point& point : series.points) point.low *= 0.98, point.high *= 1.02;
    const Plan plan = choose(profile, order);
    for (const PlanRow& row : plan.rows) EXPECT_EQ(row.way().name, "a") << factor;
    EXPECT_EQ(plan.rows.size(), 1u);
  }
}

TEST(Choose, AClearWinnerWinsEvenAsTheLaterRow) {
  const Plan plan = choose(made_up_profile({{"a", line(1e-6, 1e10)}, {"b", line(0.8e-6, 1.25e10)}}, 0.01), order);
  ASSERT_EQ(plan.rows.size(), 1u);
  EXPECT_EQ(plan.rows[0].way().name, "b");
  EXPECT_EQ(plan.rows[0].runner_up()->way.name, "a");
  EXPECT_NEAR(plan.rows[0].runner_up()->ratio, 1.25, 0.06);
}

TEST(Choose, SmallIslandsAreNotWorthASwitch) {
  // b is 4 % faster at one size only.
  Profile profile = made_up_profile({{"a", line(1e-6, 1e10)}, {"b", line(1.2e-6, 0.9e10)}});
  Point& point = profile.series[1].points[12];
  point.seconds = point.low = point.high = 0.965 * profile.series[0].points[12].seconds;
  EXPECT_EQ(choose(profile, order).rows.size(), 1u);
  point.seconds = point.low = point.high = 0.5 * profile.series[0].points[12].seconds;
  EXPECT_EQ(choose(profile, order).rows.size(), 3u);
}

TEST(Choose, NothingIsServedWhereEverythingFailed) {
  const Profile profile = made_up_profile({{"a", line(1e-6, 1e10), 1 << 20}, {"b", line(1e-5, 1e10), 1 << 16}});
  const Chooser chooser(choose(profile, order));
  EXPECT_NE(row_at(chooser, 1 << 19), nullptr);
  EXPECT_EQ(row_at(chooser, 1 << 20), nullptr);
  EXPECT_EQ(row_at(chooser, Bytes{1} << 40), nullptr);
}

TEST(Choose, PathsOutsideTheirMeasuredSizesAreNotChosen) {
  Profile profile = made_up_profile({{"a", line(1e-5, 1e9)}, {"b", line(1e-6, 1e10)}});
  auto& points = profile.series[1].points;
  points.erase(points.begin(), points.begin() + 10);
  points.resize(5);  // 1K to 16K only
  const Chooser chooser(choose(profile, order));
  for (const Bytes bytes : {Bytes{1}, Bytes{1023}, Bytes{16385}, Bytes{1} << 30})
    EXPECT_EQ(row_at(chooser, bytes)->way().name, "a") << bytes;
  for (const Bytes bytes : {Bytes{1024}, Bytes{5000}, Bytes{16384}})
    EXPECT_EQ(row_at(chooser, bytes)->way().name, "b") << bytes;
}

TEST(Choose, LoadedOfOnePairIsStreaming) {
  Profile profile = made_up_profile({{"a", line(1e-6, 1e10)}});
  profile.series[0].operation = Operation::streaming;
  const Chooser chooser(choose(profile, order));
  const PlanRow* row = chooser.choose(gpu(0), gpu(1), 1, Operation::loaded, 5);
  ASSERT_NE(row, nullptr);
  EXPECT_NE(row->why.find("as streaming"), std::string::npos);
  EXPECT_EQ(row_at(chooser, 5), nullptr);
}

// Two links between processes: the first is faster alone, the second under load.
Profile loaded_between_processes(int pairs) {
  Profile profile = made_up_profile({{"a", line(1e-6, 1e10)}, {"b", line(1e-6, 4e9)}});
  profile.classes[0] = {"gpu>gpu", {{gpu(0), gpu(1)}, {gpu(1), gpu(0)}, {gpu(1), gpu(2)}}, 2};
  for (Series& series : profile.series) {
    series.path.processes = 2;
    series.operation = Operation::streaming;
  }
  if (pairs == 0) return profile;
  for (const std::size_t i : {0u, 1u}) {
    profile.series.push_back(profile.series[1 - i]);
    profile.series.back().path.mechanism = i == 0 ? "a" : "b";
    profile.series.back().operation = Operation::loaded;
    profile.series.back().pairs = pairs;
  }
  return profile;
}

TEST(Choose, LoadedBetweenProcessesIsWhatWasMeasured) {
  constexpr std::string_view streaming = "; not measured between two processes: as streaming";
  const std::tuple<int, std::string_view, std::string_view> cases[] = {
      {0, "a", streaming}, {2, "b", "; 2 of 3 pairs at once"}, {3, "b", ""}};
  for (const auto& [pairs, mechanism, says] : cases) {
    const Chooser chooser(choose(loaded_between_processes(pairs), order));
    const PlanRow* row = chooser.choose(gpu(0), gpu(1), 2, Operation::loaded, 1 << 20);
    ASSERT_NE(row, nullptr) << pairs;
    EXPECT_EQ(row->way().name, mechanism) << pairs;
    EXPECT_EQ(row->why.find("; "), says.empty() ? std::string::npos : row->why.size() - says.size()) << row->why;
    EXPECT_TRUE(row->why.ends_with(says)) << row->why;
    EXPECT_EQ(chooser.choose(gpu(0), gpu(1), 2, Operation::streaming, 1 << 20)->way().name, "a");
  }
}

TEST(Choose, BadHysteresisIsRefused) {
  for (const char* text : {"[]", R"({"tolerance": -1})", R"({"equal": 2})", R"({"switching": "x"})"})
    EXPECT_THROW(hysteresis_from_json(parse_json(text, "o"), "options"), Error) << text;
}

}  // namespace
}  // namespace waywiser
