#pragma once

#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Every rank gets the reduction of all inputs, with the same bits if a op b and b op a have the same bits. n ranks, S
// elements, p the largest power of two not above n, f = 0 if n = p, else 1.
namespace waywiser::collective::all_reduce {

// Reduce-scatter, then all-gather, around a ring. Steps 2 (n - 1), elements 2 (n - 1) / n S.
Schedule ring(const CollectiveCall& call);
CollectiveCost ring_cost(const CollectiveCall& call);

// Pairs at distance 1, 2, 4, ... exchange everything. Steps log2 p + 2 f, elements (log2 p + f) S.
Schedule recursive_doubling(const CollectiveCall& call);
CollectiveCost recursive_doubling_cost(const CollectiveCall& call);

// Rabenseifner: recursive halving to reduce, recursive doubling to gather. Steps 2 log2 p + 2 f, elements
// (2 (p - 1) / p + f) S.
Schedule halving_doubling(const CollectiveCall& call);
CollectiveCost halving_doubling_cost(const CollectiveCall& call);

// Every rank sends all its elements to all others and reduces in rank order. Steps 1, elements (n - 1) S.
Schedule one_shot(const CollectiveCall& call);
CollectiveCost one_shot_cost(const CollectiveCall& call);

// Every rank reduces a part, then sends the result to all others. Steps 2, elements 2 (n - 1) / n S.
Schedule two_shot(const CollectiveCall& call);
CollectiveCost two_shot_cost(const CollectiveCall& call);

// Up and down two binary trees, half of the data each, in k pieces. Steps at most 3 floor(log2 n) + k - 1, elements at
// most 2 S.
Schedule double_tree(const CollectiveCall& call);
CollectiveCost double_tree_cost(const CollectiveCall& call);

// m machines, the smallest with g ranks, the largest with h: two-shot within each machine; between its two shots, for
// each of g parts, a ring over the machines. Steps 2 (m - 1), plus 2 if h > 1; elements (g + h - 2) / g S within the
// machine and 2 (m - 1) / m S / g between machines.
Schedule hierarchical(const CollectiveCall& call);
CollectiveCost hierarchical_cost(const CollectiveCall& call);
std::optional<std::string> why_not_hierarchical(const CollectiveCall& call);

}  // namespace waywiser::collective::all_reduce
