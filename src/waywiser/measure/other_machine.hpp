#pragma once

#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/two_process_meter.hpp"

namespace waywiser {

// The classes of pairs between a memory here and one of the machine at the other end, with the ways that may serve
// them.
std::vector<Subject> network_subjects(const NetworkSide& here, const NetworkSide& there,
                                      const CampaignOptions& options);

bool reaches_other_machine(const PairClass& pair_class);
// What is of this machine alone.
Profile without_other_machine(Profile profile);
// Of the machine that the profile has roads to; empty: none.
std::string other_fingerprint(const Profile& profile);

}  // namespace waywiser
