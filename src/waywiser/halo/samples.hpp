#pragma once

#include <string>
#include <vector>

#include "waywiser/halo/tuning.hpp"

namespace waywiser {

// The samples of each variant, one for each round, the largest of all ranks; empty: it is unavailable for a reason.
struct HaloSamples {
  HaloVariant variant = HaloVariant::packed;
  std::string why_unavailable;
  std::vector<Seconds> samples;
};

// The variant with the least median; of equal ones the first. Throws unavailable if none was measured.
HaloTuning tuning_of(std::vector<HaloSamples> samples);
// `last`: how the best single variant and the mix have met. The single variant's time is from there, too.
void add_last(HaloTuning& tuning, const HaloTuning& last);

// "; runner-up packed, 1.20 times as long": of a kind's times. Empty if only one was measured.
std::string runner_up(const HaloKindTimes& kind);

}  // namespace waywiser
