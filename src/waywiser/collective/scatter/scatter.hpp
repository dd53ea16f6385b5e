#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Rank i gets the i-th block of the root; blocks may differ in size. n ranks, largest block of b elements.
namespace waywiser::collective::scatter {

// Steps ceil(log2 n), at most one message more, elements (n - 1) b.
Schedule binomial_tree(const CollectiveCall& call);
CollectiveCost binomial_tree_cost(const CollectiveCall& call);

// The root sends to all at once. Steps 1, elements (n - 1) b.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::scatter
