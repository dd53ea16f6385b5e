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
  std::optional<std::string> (*why_not)(const CollectiveCall&);  // nullptr: serves every call of its operation

  // Of a fused kernel, which the GPUs of one machine run: its method; make() says what it sends. Nothing: an algorithm
  // that hosts run, and prepared schedules on GPUs.
  std::optional<fused::Method> kernel = {};

  // Nothing: make() serves this call, at every rank alike. Otherwise the reason, for people.
  std::optional<std::string> why_unavailable(const CollectiveCall& call) const;
};

std::span<const CollectiveAlgorithm> algorithms();
// Throws invalid_input with the names that the operation has.
const CollectiveAlgorithm& find_algorithm(Collective operation, std::string_view name);

}  // namespace waywiser
