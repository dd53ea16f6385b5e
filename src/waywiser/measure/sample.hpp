#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/measure/profile.hpp"

namespace waywiser {

struct Sample {
  Seconds seconds = 0;                     // per transfer, mean over `repetitions`
  Seconds cpu_seconds = 0;                 // per transfer
  std::vector<Seconds> each = {};          // the single transfers, if each was timed
  std::string disturbed = {};              // why the sample is invalid; empty: nothing is known against it
  std::optional<std::string> failed = {};  // why there is no sample, and will be none
};

}  // namespace waywiser
