#pragma once

#include <span>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// Throws invalid_input if a taken part overlaps another part. `arrays`: what each neighbour gives and takes.
void check_apart(std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);

}  // namespace waywiser

namespace waywiser::collective::neighbor_exchange {

// All messages at once, in one round. The schedule's arrays are what the first neighbour entry gives and takes, then
// those of the second, and so on. Throws invalid_input for a rank that does not exist, or if this rank gives itself
// another amount than it takes.
Schedule of_arrays(int rank, int ranks, std::span<const ArrayExchange> neighbors);

}  // namespace waywiser::collective::neighbor_exchange
