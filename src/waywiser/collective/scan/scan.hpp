#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// scan: each rank gets the reduction of its own input and of those of all lower ranks; exscan: of those of all lower
// ranks, and rank 0 gets nothing. Each function serves both. n ranks, S elements.
namespace waywiser::collective::scan {

// In step i each rank passes what it has of 2^i ranks to the rank 2^i above. Steps ceil(log2 n), elements
// ceil(log2 n) S.
Schedule recursive_doubling(const CollectiveCall& call);
CollectiveCost recursive_doubling_cost(const CollectiveCall& call);

// Each rank passes the scan of itself to the next one, in pieces. p pieces: steps n + p - 2, elements S.
Schedule chain(const CollectiveCall& call);
CollectiveCost chain_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::scan
