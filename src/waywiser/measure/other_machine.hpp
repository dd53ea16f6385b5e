#pragma once

#include <functional>

#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/two_process_meter.hpp"

namespace waywiser {

// The GPUs that represent each end.
struct GpusAtEnds {
  std::vector<int> here{0}, there{0};
};
// The classes of pairs between a memory here and one of the machine at the other end, with the paths that may serve
// them.
std::vector<Subject> network_subjects(const NetworkSide& here, const NetworkSide& there, const CampaignOptions& options,
                                      const GpusAtEnds& gpus = {});

// Removes the paths to other machines for which `dropped` is true.
Profile without_other_machines(Profile profile, const std::function<bool(NodeType)>& dropped);
// Removes the paths to a machine of that name with another fingerprint: they are out of date.
Profile without_older_of(Profile profile, const OtherNode& node);
void enter_other_node(Profile& profile, const OtherNode& node);
// The type of the other machine of the last run that had one.
NodeType measured_last(const Profile& profile);

}  // namespace waywiser
