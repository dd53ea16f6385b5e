#pragma once

#include "waywiser/comm/bootstrap/job_network.hpp"
#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/comm/shared_memory/reach_trial.hpp"

namespace waywiser {

// Collective, as soon as the ranks have met: each tries what it reaches of the memory of all others of its machine, and
// all hear what came of it. Afterwards only ranks that reach each other's memory have equal machine ids. Returns what
// works between the ranks of this machine. This rank's ReachTrial must live meanwhile. Throws as share_with_all().
LocalWays find_neighbours(Muster& muster, const Launch& launch, Deadline deadline,
                          const std::function<bool()>& interrupted = {});

}  // namespace waywiser
