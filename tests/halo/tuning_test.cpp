#include "waywiser/halo/tuning.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"

namespace waywiser {
namespace {

TEST(HaloTuning, TheLeastMedianWinsAndIsExplained) {
  HaloTuning tuning = tuning_of({{HaloVariant::whole_field, {}, {4e-4, 5e-4, 6e-4}},
                                 {HaloVariant::per_neighbor, {}, {1e-6, 3e-4, 3e-4}},
                                 {HaloVariant::packed, {}, {2e-4, 2e-4, 9e-4}},
                                 {HaloVariant::direct, "no GPU", {}}});
  tuning.took = 0.25;
  EXPECT_EQ(tuning.chosen, HaloVariant::packed);
  EXPECT_EQ(tuning.rounds, 3);
  EXPECT_EQ(explain(tuning),
            "packed: 200 us (200 us to 900 us) an exchange at the slowest rank\n"
            "runner-up per_neighbor: 300 us (1.00 us to 300 us), 1.50 times as long\n"
            "whole_field: 500 us (400 us to 600 us), 2.50 times as long\n"
            "direct unavailable: no GPU\n"
            "why: the least median of 3 interleaved rounds, measured in 250 ms");
  tuning.virtual_gpus = true;
  EXPECT_TRUE(explain(tuning).ends_with("\ntimes of virtual GPUs, which say nothing about GPUs"));
}

TEST(HaloTuning, OfEqualOnesTheFirstWins) {
  EXPECT_EQ(tuning_of({{HaloVariant::per_neighbor, {}, {1e-4}}, {HaloVariant::packed, {}, {1e-4}}}).chosen,
            HaloVariant::per_neighbor);
  EXPECT_EQ(error_of([] { tuning_of({{HaloVariant::direct, "no GPU", {}}}); }),
            "no variant of the halo exchange could be measured");
}

}  // namespace
}  // namespace waywiser
