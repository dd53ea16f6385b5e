#include <gtest/gtest.h>

#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

using made_up::group_row;

std::string found(const PlannedGpuAlgorithms& ways, Collective operation, Bytes bytes) {
  const auto all = [](const GpuAlgorithm&) { return true; };
  const GpuAlgorithm* way = ways.find(operation, bytes, all, [](const GpuAlgorithm&) { return ""; });
  return way == nullptr ? "nothing" : text(*way);
}

TEST(PlannedGpuAlgorithms, AreThoseOfTheOperationTheRanksAndTheSize) {
  Plan plan;
  plan.rows = {group_row("all_reduce", "host", 2, 0, 1 << 30, "ring"), group_row("all_reduce", "gpu", 2, 0, 1000, "LL"),
               group_row("all_reduce", "gpu", 2, 1001, 5000, "two_shot(blocks=64,threads=512)"),
               group_row("all_reduce", "gpu", 4, 0, 1 << 30, "nccl"),
               group_row("all_gather", "gpu", 2, 0, 1000, "host")};
  const Chooser chooser(plan);
  const PlannedGpuAlgorithms two(&chooser, 2), four(&chooser, 4), none(nullptr, 2);
  EXPECT_EQ(found(two, Collective::all_reduce, 1000), "LL");
  EXPECT_EQ(found(two, Collective::all_reduce, 1001), "two_shot(blocks=64,threads=512)");
  EXPECT_EQ(found(two, Collective::all_reduce, 5001), "nothing");
  EXPECT_EQ(found(two, Collective::reduce, 1000), "LL") << "as all_reduce, whose half it is";
  EXPECT_EQ(found(two, Collective::all_gather, 8), "host");
  EXPECT_EQ(found(two, Collective::broadcast, 8), "nothing");
  EXPECT_EQ(found(four, Collective::all_reduce, 5001), "nccl");
  EXPECT_EQ(found(none, Collective::all_reduce, 8), "nothing");
}

TEST(PlannedGpuAlgorithms, WhereTheBestMayNotRunTheRunnerUpDoes) {
  Plan plan;
  plan.rows = {group_row("all_reduce", "gpu", 2, 0, 1000, "nccl")};
  plan.rows.front().ways.push_back({parse_way("LL128"), 1.2});
  plan.rows.front().ways.push_back({parse_way("host"), 9});
  const Chooser chooser(plan);
  const PlannedGpuAlgorithms two(&chooser, 2);
  EXPECT_EQ(found(two, Collective::all_reduce, 8), "nccl");
  const auto all_but_nccl = [](const GpuAlgorithm& way) { return text(way) != "nccl"; };
  const auto why = [](const GpuAlgorithm&) { return "it is not installed"; };
  testing::internal::CaptureStderr();
  for (int times = 0; times < 2; ++times) {
    const GpuAlgorithm* way = two.find(Collective::all_reduce, 8, all_but_nccl, why);
    ASSERT_NE(way, nullptr);
    EXPECT_EQ(text(*way), "LL128");
  }
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "waywiser: all_reduce of gpu arrays: nccl, which the plan has from 0 on, does not run: it is not installed\n");
  EXPECT_EQ(two.find(Collective::all_reduce, 8, [](const GpuAlgorithm&) { return false; }, why), nullptr);
}

TEST(PlannedGpuAlgorithms, AWayThatNobodyKnowsIsRefused) {
  Plan plan;
  plan.rows = {group_row("broadcast", "gpu", 2, 0, 1000, "two_shot(blocks=64)")};
  const Chooser chooser(plan);
  try {
    const PlannedGpuAlgorithms two(&chooser, 2);
    FAIL() << "a grid has blocks and threads";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
    EXPECT_STREQ(error.what(), "plan: broadcast of gpu arrays has no way 'two_shot(blocks=64)'");
  }
  EXPECT_NO_THROW(PlannedGpuAlgorithms(&chooser, 4)) << "that row is not of its ranks";
}

}  // namespace
}  // namespace waywiser
