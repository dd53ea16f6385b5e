#pragma once

#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser {

// The default without a measurement in the plan: the available algorithm with the least steps * step + messages *
// message + bytes * byte + worked bytes * worked, where a step takes less if all ranks are on one machine. The same at
// every rank: if ranks have sizes of their own (all_to_all with counts, neighbor_exchange), sizes do not count.
const CollectiveAlgorithm& default_algorithm(const CollectiveCall& call, std::size_t bytes_of_element);

}  // namespace waywiser
