#include "waywiser/measure/survey.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/measure/made_up_meter.hpp"

namespace waywiser {
namespace {

using made_up::gpu_path;

// Four GPUs alike, but for what goes from gpu1 to gpu2, which takes four times as long.
class OneSlowLink : public made_up::MadeUpMeter {
 public:
  OneSlowLink() {
    links["copy"] = links["relay(via=gpu2)"] = {[](double bytes) { return 1e-6 + bytes / 1e11; }};
  }
  bool broken = false;

  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override {
    Sample sample = MadeUpMeter::take(path, operation, bytes, repetitions);
    if (path.source == gpu(1) && path.destination == gpu(2)) sample.seconds *= 4;
    return sample;
  }
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override {
    if (broken && path.source == gpu(3) && path.destination == gpu(0)) return "1 byte wrong";
    return MadeUpMeter::verify(path, operation, bytes);
  }
};

std::vector<Subject> all_alike(int processes = 1) {
  Path path = gpu_path("copy");
  path.processes = processes;
  Subject subject{{"gpu>gpu NV18", {}, processes}, {{path, {}}}};
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      if (a != b) subject.pair_class.members.emplace_back(gpu(a), gpu(b));
  return {subject};
}

CampaignOptions options() {
  CampaignOptions options;
  options.budget_seconds = 1000;
  return options;
}

Seconds seconds_of(const Profile& profile, Place source, Place destination, Operation operation) {
  for (const Series& series : profile.survey)
    if (series.operation == operation && series.path.source == source && series.path.destination == destination)
      return series.points.at(0).seconds;
  return 0;
}

TEST(Survey, EveryPairIsTimedAndTheSlowOneStandsOut) {
  OneSlowLink meter;
  const Profile profile = run_campaign(all_alike(), meter, options(), nullptr, {});
  EXPECT_EQ(profile.survey.size(), 12u * 3);
  for (const Operation operation : {Operation::streaming, Operation::latency, Operation::bidirectional}) {
    const Seconds usual = seconds_of(profile, gpu(0), gpu(1), operation);
    ASSERT_GT(usual, 0);
    EXPECT_NEAR(seconds_of(profile, gpu(1), gpu(2), operation), 4 * usual, 1e-9);
    EXPECT_NEAR(seconds_of(profile, gpu(2), gpu(1), operation), usual, 1e-9);
  }
  for (const Series& series : profile.survey)
    EXPECT_EQ(series.points.at(0).bytes, series.operation == Operation::latency ? 8u : Bytes{64} << 20);
  for (const Series& series : profile.series) EXPECT_EQ(series.path.source, gpu(0));  // choosing sees one pair only
}

TEST(Survey, IsKeptInTheFileAndNotMeasuredTwice) {
  OneSlowLink meter, again;
  const Profile profile = run_campaign(all_alike(), meter, options(), nullptr, {});
  const Profile read = profile_from_json(to_json(profile), "profile");
  EXPECT_EQ(to_json(read), to_json(profile));
  const Profile second = run_campaign(all_alike(), again, options(), &read, {});
  EXPECT_EQ(to_json(second)["survey"], to_json(profile)["survey"]);
  EXPECT_EQ(again.taken["copy streaming " + std::to_string(64u << 20)], 0);
}

TEST(Survey, WithoutTimeOrWhereItIsNotWantedPairsAreLeftOut) {
  OneSlowLink meter, short_of_time, unwanted;
  CampaignOptions told = options();
  told.survey = false;
  EXPECT_TRUE(run_campaign(all_alike(), unwanted, told, nullptr, {}).survey.empty());
  EXPECT_TRUE(run_campaign(all_alike(2), meter, options(), nullptr, {}).survey.empty());  // dear between processes
  told = options();
  told.budget_seconds = 0.01;
  EXPECT_LT(run_campaign(all_alike(), short_of_time, told, nullptr, {}).survey.size(), 36u);
}

TEST(Survey, APairThatDamagesBytesIsRefused) {
  OneSlowLink meter;
  meter.broken = true;
  const Profile profile = run_campaign(all_alike(), meter, options(), nullptr, {});
  EXPECT_EQ(seconds_of(profile, gpu(3), gpu(0), Operation::streaming), 0);
  EXPECT_TRUE(std::ranges::any_of(profile.rejected, [](const Rejected& entry) {
    return entry.path.source == gpu(3) && entry.reason.find("wrong") != std::string::npos;
  }));
}

}  // namespace
}  // namespace waywiser
