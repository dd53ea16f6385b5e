#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Every rank gets the root's data. n ranks, S elements; pipelined algorithms cut them into k pieces.
namespace waywiser::collective::broadcast {

// Steps ceil(log2 n), elements ceil(log2 n) S.
Schedule binomial_tree(const CollectiveCall& call);
CollectiveCost binomial_tree_cost(const CollectiveCall& call);

// From rank to rank, in pieces. Steps n + k - 2, elements S.
Schedule chain(const CollectiveCall& call);
CollectiveCost chain_cost(const CollectiveCall& call);

// A binomial scatter of n parts, then a ring. Steps ceil(log2 n) + n - 1, elements 2 (n - 1) / n S.
Schedule scatter_all_gather(const CollectiveCall& call);
CollectiveCost scatter_all_gather_cost(const CollectiveCall& call);

// The root feeds two binary trees of the other ranks, half of the data each. Steps floor(log2(n - 1)) + k, elements S.
Schedule double_tree(const CollectiveCall& call);
CollectiveCost double_tree_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::broadcast
