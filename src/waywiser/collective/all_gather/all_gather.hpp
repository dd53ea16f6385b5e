#pragma once

#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Every rank gets the blocks of all ranks, which may differ in size. n ranks, largest block of b elements; all
// algorithms send (n - 1) b elements.
namespace waywiser::collective::all_gather {

// Each block goes around the ring. Steps n - 1.
Schedule ring(const CollectiveCall& call);
CollectiveCost ring_cost(const CollectiveCall& call);

// Pairs at distance 1, 2, 4, ... exchange all blocks that they have. Steps log2 n; for powers of two.
Schedule recursive_doubling(const CollectiveCall& call);
CollectiveCost recursive_doubling_cost(const CollectiveCall& call);
std::optional<std::string> why_not_recursive_doubling(const CollectiveCall& call);

// Like recursive doubling, around a ring, for any n. Steps ceil(log2 n), at most 2 messages each.
Schedule bruck(const CollectiveCall& call);
CollectiveCost bruck_cost(const CollectiveCall& call);

// Sends to all other ranks at once. Steps 1.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::all_gather
