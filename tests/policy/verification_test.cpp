#include "waywiser/policy/verification.hpp"

#include <gtest/gtest.h>

#include "tests/measure/made_up_meter.hpp"
#include "tests/policy/made_up_links.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/explain.hpp"

namespace waywiser {
namespace {

using made_up::gpu_path;
using made_up::line;
using made_up::MadeUpMeter;

struct Tuned {
  Profile profile;
  Plan plan;
};

MadeUpMeter machine(double noise, std::uint64_t seed) {
  MadeUpMeter meter(noise, seed);
  meter.links["a"] = {line(1e-6, 1e9)};
  meter.links["b"] = {line(4e-6, 1e10)};
  meter.links["c"] = {line(1e-5, 1e11)};
  meter.links["d"] = {line(1.02e-5, 0.98e11)};
  return meter;
}

CampaignOptions short_options() {
  CampaignOptions options;
  options.operations = {Operation::latency};
  options.max_bytes = 1 << 24;
  return options;
}

Tuned tune(MadeUpMeter& meter) {
  const std::vector<Subject> subjects = {
      made_up::subject_of({{gpu_path("a"), {}}, {gpu_path("b"), {}}, {gpu_path("c"), {}}, {gpu_path("d"), {}}})};
  Tuned tuned{run_campaign(subjects, meter, short_options(), nullptr, {}), {}};
  tuned.plan = choose(tuned.profile, {"a", "b", "c", "d"});
  return tuned;
}

TEST(Verification, NoiseOfFivePercentDoesNotMakeAGoodPlanLose) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    MadeUpMeter meter = machine(0.05, seed);
    const Tuned tuned = tune(meter);
    const Verification result = verify_plan(tuned.profile, tuned.plan, meter, short_options(), {});
    EXPECT_GE(result.cases.size(), 20u);
    for (const VerifiedCase& entry : result.cases) EXPECT_TRUE(entry.within()) << seed << " " << entry.bytes;
  }
}

// Twelve paths of one true time, and the first of them, which is chosen everywhere, `factor` times as slow afterwards.
Verification with_equal_rivals(double factor, std::uint64_t seed) {
  MadeUpMeter meter(0.05, seed);
  std::vector<Family> families;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "path" + std::to_string(i);
    meter.links[name] = {line(1e-6, 1e10)};
    families.push_back({gpu_path(name), {}});
  }
  const Profile profile = run_campaign({made_up::subject_of(families)}, meter, short_options(), nullptr, {});
  Plan plan = choose(profile, {});
  plan.rows.resize(1);
  plan.rows[0].ways = {{{"path0", gpu_path("path0").parameters}}};
  plan.rows[0].from_bytes = 0;
  plan.rows[0].to_bytes = Bytes{1} << 40;
  meter.links["path0"] = {[=](double bytes) { return factor * line(1e-6, 1e10)(bytes); }};
  return verify_plan(profile, plan, meter, short_options(), {});
}

int within(const Verification& result) {
  return static_cast<int>(
      std::ranges::count_if(result.cases, [](const VerifiedCase& entry) { return entry.within(); }));
}

TEST(Verification, ManyNoisyRivalsDoNotMakeAnEqualPathLose) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Verification result = with_equal_rivals(1.0, seed);
    ASSERT_GE(result.cases.size(), 20u);
    EXPECT_EQ(within(result), static_cast<int>(result.cases.size()));
    EXPECT_LT(to_json(result)["median_ratio"].get<double>(), 1.02);
  }
}

TEST(Verification, APlantedLoserIsCaught) {
  int cases = 0, missed = 0;  // noise may hide one of a hundred
  for (const double factor : {1.07, 1.10})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Verification result = with_equal_rivals(factor, seed);
      ASSERT_GE(result.cases.size(), 20u);
      cases += static_cast<int>(result.cases.size());
      missed += within(result);
      EXPECT_NEAR(to_json(result)["median_ratio"].get<double>(), factor, 0.015);
    }
  EXPECT_LE(missed, cases / 100);
}

TEST(Verification, APathThreePercentSlowerIsWithinFive) {
  const Verification result = with_equal_rivals(1.03, 1);
  EXPECT_GE(within(result), static_cast<int>(0.95 * static_cast<double>(result.cases.size())));
  EXPECT_NEAR(to_json(result)["median_ratio"].get<double>(), 1.03, 0.015);
}

// One of two sittings falls into a disturbance of the chosen path: the case stays undecided and gets more sittings.
TEST(Verification, ADisturbanceThatLastsForOneSittingDoesNotDecide) {
  MadeUpMeter meter = machine(0.02, 1);
  const Tuned tuned = tune(meter);
  const Seconds from = meter.now(), until = from + 0.02;
  for (const char* name : {"a", "b", "c"}) {
    const auto calm = meter.links[name].seconds;
    meter.links[name].seconds = [&meter, calm, until](double bytes) {
      return (meter.now() < until ? 2 : 1) * calm(bytes);
    };
  }
  const Verification result = verify_plan(tuned.profile, tuned.plan, meter, short_options(), {});
  EXPECT_GE(within(result), static_cast<int>(0.95 * static_cast<double>(result.cases.size())));
}

TEST(Verification, SizesAreNotThoseThatWereMeasured) {
  MadeUpMeter meter = machine(0, 1);
  const Tuned tuned = tune(meter);
  for (const VerifiedCase& entry : verify_plan(tuned.profile, tuned.plan, meter, short_options(), {}).cases)
    for (const Series& series : tuned.profile.series)
      for (const Point& point : series.points) EXPECT_NE(point.bytes, entry.bytes);
}

TEST(Verification, AMachineThatChangedIsSeen) {
  MadeUpMeter meter = machine(0.02, 1);
  const Tuned tuned = tune(meter);
  meter.links["c"] = {line(1.3e-5, 0.8e11)};
  const Verification result = verify_plan(tuned.profile, tuned.plan, meter, short_options(), {});
  const Json json = to_json(result);
  EXPECT_LT(json["within_5_percent"].get<std::size_t>(), json["cases"].get<std::size_t>());
  EXPECT_NEAR(json["worst_ratio"].get<double>(), 1.25, 0.1);
}

TEST(Verification, AChosenPathThatFailsIsTheWorstCase) {
  MadeUpMeter meter = machine(0.02, 1);
  const Tuned tuned = tune(meter);
  meter.links["a"].fails_from = 0;
  const Verification result = verify_plan(tuned.profile, tuned.plan, meter, short_options(), {});
  EXPECT_TRUE(std::any_of(result.cases.begin(), result.cases.end(), [](const VerifiedCase& entry) {
    return !entry.failed.empty() && !entry.within() && entry.ratio == 1000;
  }));
}

TEST(Verification, BudgetAndStopAreKept) {
  MadeUpMeter meter = machine(0.02, 1);
  const Tuned tuned = tune(meter);
  CampaignOptions options = short_options();
  options.budget_seconds = 0.05;
  const Seconds before = meter.now();
  const Verification part = verify_plan(tuned.profile, tuned.plan, meter, options, {});
  EXPECT_GT(part.skipped, 0);
  EXPECT_LT(meter.now() - before, 0.2);
  int calls = 0;
  meter.fixed_cost = 0.02;
  const Verification stopped =
      verify_plan(tuned.profile, tuned.plan, meter, short_options(), [&](const Progress&) { return ++calls < 10; });
  EXPECT_TRUE(stopped.interrupted);
}

TEST(Explain, NamesTheChosenTheOthersAndTheUnavailable) {
  MadeUpMeter meter = machine(0, 1);
  meter.missing = {"b"};
  meter.links["d"].fails_from = 1 << 20;
  const Tuned tuned = tune(meter);
  const Json answer =
      explain(tuned.profile, tuned.plan, {gpu(0), gpu(1), 1, Operation::latency, 1 << 22}, {"a", "b", "c", "d"});
  EXPECT_EQ(answer["chosen"], "c");
  ASSERT_EQ(answer["candidates"].size(), 2u);
  EXPECT_EQ(answer["candidates"][0]["label"], "c");
  EXPECT_NEAR(answer["candidates"][1]["ratio"].get<double>(), 80, 10);
  EXPECT_FALSE(answer["candidates"][0]["measured"].is_null());
  ASSERT_EQ(answer["unavailable"].size(), 2u);
  EXPECT_EQ(answer["unavailable"][0]["reason"], "not on this machine");
  EXPECT_NE(answer["unavailable"][1]["reason"].get<std::string>().find("rejected from 1M on"), std::string::npos);
  EXPECT_THROW(explain(tuned.profile, tuned.plan, {gpu(0), gpu(9), 1, Operation::latency, 1}, {}), Error);
}

}  // namespace
}  // namespace waywiser
