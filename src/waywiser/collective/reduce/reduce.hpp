#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// The root gets the reduction of all inputs. n ranks, S elements.
namespace waywiser::collective::reduce {

// Steps ceil(log2 n), elements S.
Schedule binomial_tree(const CollectiveCall& call);
CollectiveCost binomial_tree_cost(const CollectiveCall& call);

// All ranks send to the root, which reduces in ring order starting with itself. Steps 1, elements S; scratch (n - 1) S.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::reduce
