#include "waywiser/collective/default_choice.hpp"

#include <limits>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

// Seconds of a step, a message and a byte between two ranks.
double seconds(const CollectiveCost& cost, double bytes, bool one_machine) {
  const auto times = [](std::uint64_t number, std::uint64_t each) {
    return static_cast<double>(number) * static_cast<double>(each);
  };
  const auto step = one_machine ? defaults::rough_step_nearby : defaults::rough_step;
  return (times(cost.steps, step) + times(cost.messages, defaults::rough_message)) * 1e-9 +
         (times(cost.elements, defaults::rough_byte) + times(cost.worked, defaults::rough_worked)) * bytes * 1e-12;
}

bool sizes_agree(const CollectiveCall& call) {
  return call.operation != Collective::neighbor_exchange &&
         (call.operation != Collective::all_to_all || call.counts.empty());
}

}  // namespace

const CollectiveAlgorithm& default_algorithm(const CollectiveCall& call, std::size_t bytes_of_element) {
  const double bytes = sizes_agree(call) ? static_cast<double>(bytes_of_element) : 0;
  const CollectiveAlgorithm* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveAlgorithm& row : algorithms()) {
    if (row.operation != call.operation || row.kernel || row.why_unavailable(call)) continue;
    const double time = seconds(row.cost(call), bytes, call.machine_of.empty());
    if (time >= least) continue;
    least = time;
    best = &row;
  }
  return *best;  // every operation has a row without conditions
}

}  // namespace waywiser
