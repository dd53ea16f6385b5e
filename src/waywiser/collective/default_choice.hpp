#pragma once

#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// Costs of a step, a message and a byte between two ranks, for a choice without measurements.
struct RoughRates {
  double step = static_cast<double>(defaults::rough_step) * 1e-9;        // seconds until a message has arrived
  double message = static_cast<double>(defaults::rough_message) * 1e-9;  // seconds until the next can be sent
  double byte = static_cast<double>(defaults::rough_byte) * 1e-12;       // seconds per byte
  double worked = static_cast<double>(defaults::rough_worked) * 1e-12;   // the same for bytes copied or reduced
};

// The default without a measurement in the plan: the available algorithm with the least steps * step + messages *
// message + bytes * byte + worked bytes * worked. The same at every rank: if ranks have sizes of their own (all_to_all
// with counts, neighbor_exchange), sizes do not count.
const CollectiveAlgorithm& default_algorithm(const CollectiveCall& call, std::size_t bytes_of_element,
                                             const RoughRates& rates = {});

}  // namespace waywiser
