#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// The root gets the blocks of all ranks, which may differ in size. n ranks, largest block of b elements.
namespace waywiser::collective::gather {

// Steps ceil(log2 n), at most 2 messages, elements about n / 2 b at the rank that sends most.
Schedule binomial_tree(const CollectiveCall& call);
CollectiveCost binomial_tree_cost(const CollectiveCall& call);

// All send to the root. Steps 1, elements b.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::gather
