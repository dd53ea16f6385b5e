#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/halo/variant.hpp"

namespace waywiser {

// What tune() has measured of one variant.
struct HaloTime {
  HaloVariant variant = HaloVariant::packed;
  std::string why_unavailable;  // empty: it was measured
  // The median time of an exchange at the slowest rank, and its 95 % confidence interval.
  Seconds median = 0, low = 0, high = 0;
};

// Sides of a partition that are alike, so that they got one variant.
struct HaloKindTimes {
  std::uint64_t key = 0;
  std::string words;  // "sides like (0, 1) of 4K to 8K bytes"
  HaloVariant chosen = HaloVariant::packed;
  std::vector<HaloTime> times;  // of a whole exchange, while other kinds stayed as they were
};

// The answer of tune(), the same at all ranks.
struct HaloTuning {
  std::vector<HaloTime> times;  // of all variants, and of the mix, if one was better for some sides
  HaloVariant chosen = HaloVariant::packed;
  HaloVariant base = HaloVariant::packed;  // of a mix: that of sides of no kind below
  std::vector<HaloKindTimes> kinds;        // in the order in which they were tried
  int rounds = 0;                          // samples of each variant
  int last_rounds = 0;                     // samples of the mix, and of the variant that it met
  Seconds took = 0;
  bool virtual_gpus = false;  // the times say nothing about GPUs
  std::string source;         // the file from which an earlier run's answer comes; empty: it was measured
};

// For people: the variant, its time, the runner-up, the others, the kinds of sides, and how it was measured.
[[gnu::visibility("default")]] std::string explain(const HaloTuning& tuning);

}  // namespace waywiser
