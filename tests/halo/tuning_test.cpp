#include "waywiser/halo/tuning.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "waywiser/halo/samples.hpp"
#include "waywiser/halo/side_kind.hpp"

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

TEST(HaloTuning, AMixIsExplainedByItsKindsOfSides) {
  HaloTuning tuning = tuning_of({{HaloVariant::whole_field, {}, {5e-4}},
                                 {HaloVariant::per_neighbor, {}, {3e-4}},
                                 {HaloVariant::packed, {}, {2e-4}}});
  tuning.took = 0.25;
  tuning.kinds = {{1, "sides like (1, 0) of 4K to 8K bytes", HaloVariant::packed, {}},
                  {2, "sides like (0, 1) of 1K to 2K bytes", HaloVariant::per_neighbor, {}}};
  tuning.kinds[1].times = {{HaloVariant::packed, {}, 2e-4, 2e-4, 2e-4},
                           {HaloVariant::per_neighbor, {}, 1e-4, 1e-4, 1e-4}};
  add_last(tuning, tuning_of({{HaloVariant::packed, {}, {6e-4, 6e-4}}, {HaloVariant::mixed, {}, {3e-4, 3e-4}}}));
  EXPECT_EQ(tuning.chosen, HaloVariant::mixed);
  EXPECT_EQ(explain(tuning),
            "mixed: 300 us an exchange at the slowest rank\n"
            "runner-up per_neighbor: 300 us, 1.00 times as long\n"
            "whole_field: 500 us, 1.67 times as long\n"
            "packed: 600 us, 2.00 times as long\n"
            "sides like (1, 0) of 4K to 8K bytes: packed\n"
            "sides like (0, 1) of 1K to 2K bytes: per_neighbor; runner-up packed, 2.00 times as long\n"
            "why: the least median of 1 interleaved rounds, and of 2 between the mix and the best, measured in 250 ms");
}

TEST(HaloTuning, KindsOfSidesAreNumbers) {
  const HaloSideKind kinds[] = {{{false, true}, 12, true, true},
                                {{false, true}, 12, false, true},
                                {{true, true, true, false}, 0, true, false},
                                {{}, 30, true, true}};
  for (const HaloSideKind& each : kinds) {
    EXPECT_EQ(kind_of(key_of(each)), each);
    for (const HaloSideKind& other : kinds) EXPECT_EQ(key_of(each) == key_of(other), each == other);
  }
  EXPECT_EQ(words_of(kinds[0]), "sides like (0, 1) of 4K to 8K bytes, contiguous");
  EXPECT_EQ(words_of(kinds[2]), "sides like (1, 1, 1, 0) of 1 to 2 bytes, contiguous, to other machines");
  EXPECT_EQ(words_of(kinds[3]), "sides of 1G to 2G bytes, contiguous");
}

TEST(HaloTuning, OfEqualOnesTheFirstWins) {
  EXPECT_EQ(tuning_of({{HaloVariant::per_neighbor, {}, {1e-4}}, {HaloVariant::packed, {}, {1e-4}}}).chosen,
            HaloVariant::per_neighbor);
  EXPECT_EQ(error_of([] { tuning_of({{HaloVariant::direct, "no GPU", {}}}); }),
            "no variant of the halo exchange could be measured");
}

}  // namespace
}  // namespace waywiser
