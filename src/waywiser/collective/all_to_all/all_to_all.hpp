#pragma once

#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/comm/schedule.hpp"

// Rank i sends its j-th block to rank j, which stores it as its i-th. n ranks, largest block of b elements. If input
// and output are one buffer, the input is copied first.
namespace waywiser::collective::all_to_all {

// All blocks at once. Steps 1, elements (n - 1) b.
Schedule direct(const CollectiveCall& call);
CollectiveCost direct_cost(const CollectiveCall& call);

// Round i sends to the i-th rank above and receives from the i-th rank below. Steps n - 1, elements (n - 1) b.
Schedule pairwise(const CollectiveCall& call);
CollectiveCost pairwise_cost(const CollectiveCall& call);

// Step k sends all blocks whose distance has bit k set, packed. Steps ceil(log2 n), elements about n / 2 ceil(log2 n)
// b. For blocks of one size.
Schedule bruck(const CollectiveCall& call);
CollectiveCost bruck_cost(const CollectiveCall& call);
std::optional<std::string> why_not_bruck(const CollectiveCall& call);

}  // namespace waywiser::collective::all_to_all
