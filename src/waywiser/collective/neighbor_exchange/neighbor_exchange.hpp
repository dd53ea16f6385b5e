#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Every rank sends a message to each of its neighbours and receives one from each; one rank may be several neighbours,
// and a rank may be its own neighbour.
namespace waywiser::collective::neighbor_exchange {

// All messages at once. Steps 1, messages and elements as in the call.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::neighbor_exchange
