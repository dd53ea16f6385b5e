#pragma once

#include <span>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser::collective::neighbor_exchange {

// All at once, in one round. The schedule's arrays are what the first one gives and takes, then those of the second,
// and so on. Throws invalid_input: a rank that does not exist, or not as much given to this rank itself as taken.
Schedule of_arrays(int rank, int ranks, std::span<const ArrayExchange> neighbors);

}  // namespace waywiser::collective::neighbor_exchange
