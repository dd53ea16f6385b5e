// The ways of a plan's row: the best of each owner, of what encrypts, and of what was measured elsewhere in the range.
#include <gtest/gtest.h>

#include "tests/policy/made_up_links.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {
namespace {

using made_up::line;
using made_up::made_up_profile;

// Two GPUs of two processes: push is fastest, pull next, copy engines last.
Plan plan_of_directions(const char* fastest, const char* next) {
  Profile profile = made_up_profile(
      {{"sm_copy", line(1e-6, 1e11)}, {"sm_copy", line(2e-6, 1e11)}, {"copy_engine", line(9e-6, 1e11)}});
  profile.classes.front().processes = 2;
  for (Series& series : profile.series) series.path.processes = 2;
  profile.series[0].path.parameters = {{"direction", fastest}, {"blocks", "32"}};
  profile.series[1].path.parameters = {{"direction", next}, {"blocks", "8"}};
  return plan_from_json(to_json(choose(profile, mechanism_order())), "plan");
}

TEST(Choose, ARowHasTheBestPathOfEachOwner) {
  const auto run_by = [](const Plan& plan, int worker) {
    const auto path = Chooser::path_run_by(plan.rows.front(), gpu(0), gpu(1), gpu(worker));
    return path ? label(*path) : "none";
  };
  const Plan pushes = plan_of_directions("push", "pull");
  EXPECT_EQ(run_by(pushes, 0), "sm_copy(blocks=32,direction=push)");
  EXPECT_EQ(run_by(pushes, 1), "sm_copy(blocks=8,direction=pull)");
  const Plan pulls = plan_of_directions("pull", "push");
  EXPECT_EQ(run_by(pulls, 0), "sm_copy(blocks=8,direction=push)");
  EXPECT_EQ(run_by(pulls, 1), "sm_copy(blocks=32,direction=pull)");
  const Plan only_pulls = plan_of_directions("pull", "pull");
  EXPECT_EQ(run_by(only_pulls, 0), "copy_engine");
  EXPECT_EQ(run_by(plan_of_directions("push", "push"), 1), "none");
}

TEST(Choose, ATwoSidedPathComesWithItsBestOneSidedRival) {
  Profile profile =
      made_up_profile({{"ucx", line(1e-6, 1e11)}, {"sm_copy", line(2e-5, 1e9)}, {"copy_engine", line(1e-5, 1e10)}});
  profile.classes.front().processes = 2;
  for (Series& series : profile.series) series.path.processes = 2;
  profile.series[1].path.parameters["direction"] = "push";
  const Plan plan = plan_from_json(to_json(choose(profile, mechanism_order())), "plan");
  ASSERT_FALSE(plan.rows.empty());
  ASSERT_EQ(plan.rows.front().way().name, "ucx");
  const auto rival = Chooser::path_run_by(plan.rows.front(), gpu(0), gpu(1), gpu(0));
  ASSERT_TRUE(rival);
  EXPECT_EQ(rival->mechanism, "copy_engine");
}

// Even if it is the fastest: it has rows of its own, for jobs that ask for it.
TEST(Choose, WhatEncryptsIsNotChosen) {
  Profile profile =
      made_up_profile({{"ucx", line(1e-6, 1e9)}, {"tls", line(1e-7, 1e10)}, {"ucx_staged", line(1e-3, 1e9)}});
  const Plan plan = plan_from_json(to_json(choose(profile, mechanism_order())), "plan");
  ASSERT_FALSE(plan.rows.empty());
  for (const PlanRow& row : plan.rows) {
    EXPECT_EQ(row.way().name, row.key.encrypted ? "tls" : "ucx");
    EXPECT_EQ(row.runner_up() == nullptr ? "none" : row.runner_up()->way.name,
              row.key.encrypted ? "none" : "ucx_staged");
  }
  const Chooser chooser(plan);
  for (const bool encrypted : {false, true}) {
    const PlanRow* row = chooser.choose(gpu(0), gpu(1), 1, Operation::latency, 4096, {}, encrypted);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->key.encrypted, encrypted);
  }
}

// Where time was short, not every path was measured at the large sizes.
TEST(Choose, WhatWasMeasuredElsewhereInTheRangeServesTheRow) {
  Profile profile =
      made_up_profile({{"ucx", line(1e-6, 1e9)}, {"tls", line(1e-5, 1e9)}, {"copy_engine", line(1e-3, 1e9)}});
  profile.classes.front().processes = 2;
  for (Series& series : profile.series) {
    series.path.processes = 2;
    if (series.path.mechanism != "ucx")
      std::erase_if(series.points, [](const Point& point) { return point.bytes > 64; });
  }
  const Plan plan = plan_from_json(to_json(choose(profile, mechanism_order())), "plan");
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].way().name, "ucx");
  ASSERT_EQ(plan.rows[0].ways.size(), 2u);
  EXPECT_EQ(plan.rows[0].ways[1].way.name, "copy_engine");
  EXPECT_EQ(plan.rows[0].ways[1].ratio, 0) << "nobody has measured it in the middle of the range";
  EXPECT_EQ(plan.rows[0].runner_up(), nullptr);
  EXPECT_TRUE(plan.rows[1].key.encrypted);
  EXPECT_EQ(plan.rows[1].way().name, "tls");
  for (Series& series : profile.series)
    std::erase_if(series.points,
                  [&](const Point& point) { return series.path.mechanism == "ucx" && point.bytes <= 64; });
  const Plan apart = choose(profile, mechanism_order());
  ASSERT_EQ(apart.rows.size(), 3u);
  EXPECT_EQ(apart.rows[1].way().name, "ucx");
  EXPECT_EQ(apart.rows[1].ways.size(), 1u) << "nobody has measured another there";
}

}  // namespace
}  // namespace waywiser
