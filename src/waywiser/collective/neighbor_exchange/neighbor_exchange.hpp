#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Every rank sends a message to each of its neighbours and receives one from each; the same rank may be several
// neighbours, this rank itself too.
namespace waywiser::collective::neighbor_exchange {

// All at once. Steps 1, messages and elements those of the call.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::neighbor_exchange
