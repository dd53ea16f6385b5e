#pragma once

#include <vector>

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

// A class of pairs, an operation and a size that was not used for choosing.
struct VerificationCase {
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  Path chosen;
  std::vector<Path> others;
  Seconds expected = 0;  // of one sample of each, from the profile
};

// In ascending order of size for each class and operation. Sizes are 3 and 2.5 times powers of two: most are whole
// words, like most messages; every sixth is odd.
std::vector<VerificationCase> verification_cases(const Profile& profile, const Chooser& chooser,
                                                 const CampaignOptions& options);

}  // namespace waywiser
