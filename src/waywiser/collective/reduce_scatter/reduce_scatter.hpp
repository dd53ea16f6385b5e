#pragma once

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Rank i gets the reduction of the i-th blocks of all inputs. n ranks, largest block of b elements, p the largest power
// of two not above n, f = 0 if n = p, else 1.
namespace waywiser::collective::reduce_scatter {

// Each block travels around the ring and accumulates. Steps n - 1, elements (n - 1) b.
Schedule ring(const CollectiveCall& call);
CollectiveCost ring_cost(const CollectiveCall& call);

// Pairs at distance p / 2, p / 4, ..., 1 exchange halves of the rest. Steps log2 p + 2 f, elements (n - 1 + f) b.
Schedule recursive_halving(const CollectiveCall& call);
CollectiveCost recursive_halving_cost(const CollectiveCall& call);

// Every rank gets its blocks from all others at once. Steps 1, elements (n - 1) b.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

}  // namespace waywiser::collective::reduce_scatter
