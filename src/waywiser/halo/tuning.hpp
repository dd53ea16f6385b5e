#pragma once

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

// The answer of tune(), the same at all ranks.
struct HaloTuning {
  std::vector<HaloTime> times;  // of all variants
  HaloVariant chosen = HaloVariant::packed;
  int rounds = 0;  // samples of each variant
  Seconds took = 0;
  bool virtual_gpus = false;  // the times say nothing about GPUs
};

// The samples of each variant, one for each round, the largest of all ranks; empty: it is unavailable for a reason.
struct HaloSamples {
  HaloVariant variant = HaloVariant::packed;
  std::string why_unavailable;
  std::vector<Seconds> samples;
};

// The variant with the least median; of equal ones the first. Throws unavailable if none was measured.
HaloTuning tuning_of(std::vector<HaloSamples> samples);

// For people: the variant, its time, the runner-up, the others, and how it was measured.
[[gnu::visibility("default")]] std::string explain(const HaloTuning& tuning);

}  // namespace waywiser
