#pragma once

#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser {

// Costs of a step, a message and a byte between two ranks, for a choice without measurements.
struct RoughRates {
  double step = 3e-6;       // seconds until a message has arrived
  double message = 0.3e-6;  // seconds until the next message can be sent
  double byte = 1e-10;      // 10 GB/s
  double worked = 3e-11;    // seconds per byte that a rank copies or reduces
};

// The default without a measurement in the plan: the available algorithm with the least steps * step + messages *
// message + bytes * byte + worked bytes * worked. The same at every rank: if ranks have sizes of their own (all_to_all
// with counts, neighbor_exchange), sizes do not count.
const CollectiveAlgorithm& default_algorithm(const CollectiveCall& call, std::size_t bytes_of_element,
                                             const RoughRates& rates = {});

}  // namespace waywiser
