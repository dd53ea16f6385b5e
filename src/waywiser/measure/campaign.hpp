#pragma once

#include <vector>

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/path/enumerate.hpp"

namespace waywiser {

// A class of pairs and the paths that may serve it; the families are written for its first pair.
struct Subject {
  PairClass pair_class;
  std::vector<Family> families;
};

// Measures every available path of every subject, and searches the parameters of families. The profile lacks only the
// names of machine, backend and time. Points of `previous` are kept and not measured again; the caller passes it only
// if it belongs to the same machine. Deterministic for one seed and one behaviour of the meter.
Profile run_campaign(const std::vector<Subject>& subjects, Meter& meter, const CampaignOptions& options,
                     const Profile* previous, const ProgressCallback& progress);

}  // namespace waywiser
