#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

struct CollectiveAlgorithm {
  Collective operation;
  std::string_view name;
  Schedule (*make)(const CollectiveCall&);
  CollectiveCost (*cost)(const CollectiveCall&);
  std::optional<std::string> (*why_not)(const CollectiveCall&);  // nullptr: serves all calls of its operation

  // The method of a fused kernel, which the GPUs of one machine run; make() then lists what it sends. Empty: an
  // algorithm for hosts and for prepared schedules on GPUs.
  std::optional<fused::Method> kernel = {};

  // Empty: make() serves this call, at every rank alike. Otherwise the reason, for people.
  std::optional<std::string> why_unavailable(const CollectiveCall& call) const;
};

std::span<const CollectiveAlgorithm> algorithms();
// Throws invalid_input that lists the operation's algorithms.
const CollectiveAlgorithm& find_algorithm(Collective operation, std::string_view name);

}  // namespace waywiser
