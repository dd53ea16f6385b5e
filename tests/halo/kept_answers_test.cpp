#include "waywiser/halo/kept_answers.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

TEST(KeptHaloAnswers, RowsThatCameWhileItWasMeasuredStay) {
  const std::filesystem::path file = std::filesystem::path(::testing::TempDir()) / "kept_halo_answers.json";
  std::filesystem::remove(file);
  TestRanks ranks(1);
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    KeptHaloAnswers answers(group, file, {}, "host", "host");
    require_that(!answers.known(), "no answer yet");
    Plan other;
    other.rows = {made_up::group_row("all_reduce", "host", 2, 0, 100, "ring")};
    write_json(file, to_json(other));
    HaloTuning tuning;
    tuning.times = {{HaloVariant::packed, {}, 1e-5, 1e-5, 1e-5}};
    answers.keep(tuning);
    const Plan plan = plan_from_json(read_json(file), "plan");
    require_that(plan.rows.size() == 2 && plan.rows.front().key.operation == "all_reduce", "both rows");
    require_that(answers.known().has_value(), "the answer");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
