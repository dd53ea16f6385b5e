#pragma once

#include <optional>
#include <string>

#include "waywiser/collective/call.hpp"
#include "waywiser/collective/cost.hpp"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/comm/schedule.hpp"

// What a fused kernel sends, receives and reduces, as a schedule, for the table of algorithms and its readers. Flags
// between ranks that exchange no data are not included.
namespace waywiser::fused {

Schedule one_shot_of(std::string_view name, const CollectiveCall& call);
CollectiveCost one_shot_cost_of(const CollectiveCall& call);
Schedule two_shot_of(std::string_view name, const CollectiveCall& call);
CollectiveCost two_shot_cost_of(const CollectiveCall& call);

// The same at every rank; independent of the GPUs.
std::optional<std::string> why_not_fused(const CollectiveCall& call);

// For rows of the table.
constexpr std::string_view row_name(Method method) noexcept {
  constexpr std::string_view names[] = {"fused_LL", "fused_one_shot", "fused_two_shot", "fused_LL128",
                                        "fused_two_shot_LL128"};
  return names[static_cast<std::size_t>(method)];
}
template <Method method>
Schedule schedule_of(const CollectiveCall& call) {
  return is_two_shot(method) ? two_shot_of(row_name(method), call) : one_shot_of(row_name(method), call);
}
template <Method method>
CollectiveCost cost_of(const CollectiveCall& call) {
  return is_two_shot(method) ? two_shot_cost_of(call) : one_shot_cost_of(call);
}

}  // namespace waywiser::fused
