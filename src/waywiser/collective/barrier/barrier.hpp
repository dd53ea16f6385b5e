#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// No rank ends before every rank has begun. Messages are one element of scratch, whose value does not matter.
namespace waywiser::collective::barrier {

// To the rank 1, 2, 4, ... above. Steps ceil(log2 n), a message each.
Schedule dissemination(const CollectiveCall& call);
CollectiveCost dissemination_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::barrier
