#include "waywiser/collective/default_choice.hpp"

#include <limits>

namespace waywiser {
namespace {

bool sizes_agree(const CollectiveCall& call) {
  return call.operation != Collective::neighbor_exchange &&
         (call.operation != Collective::all_to_all || call.counts.empty());
}

}  // namespace

const CollectiveAlgorithm& default_algorithm(const CollectiveCall& call, std::size_t bytes_of_element,
                                             const RoughRates& rates) {
  const double bytes = sizes_agree(call) ? static_cast<double>(bytes_of_element) : 0;
  const CollectiveAlgorithm* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveAlgorithm& row : algorithms()) {
    if (row.operation != call.operation || row.kernel || row.why_unavailable(call)) continue;
    const CollectiveCost cost = row.cost(call);
    const double time = static_cast<double>(cost.steps) * rates.step +
                        static_cast<double>(cost.messages) * rates.message +
                        static_cast<double>(cost.elements) * bytes * rates.byte +
                        static_cast<double>(cost.worked) * bytes * rates.worked;
    if (time >= least) continue;
    least = time;
    best = &row;
  }
  return *best;  // every operation has a row without conditions
}

}  // namespace waywiser
