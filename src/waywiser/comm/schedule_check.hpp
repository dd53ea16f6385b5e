#pragma once

#include <optional>
#include <span>
#include <string>

#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// What one rank's schedule must not do, for people: rounds that do not ascend, blocks outside of their buffer, steps of
// one round that touch what another one writes, a put without a signal. Nothing: it can be run.
std::optional<std::string> why_invalid(const Schedule& schedule);

// The same of all ranks' schedules together, each valid by itself: what is sent and what is received do not fit.
std::optional<std::string> why_unlike(std::span<const Schedule> schedules);

// What a rank sends to another, or takes from it, for ranks that compare it without each other's schedules: the number
// of messages, and a number that tells their sizes, types and order apart.
struct MessageSummary {
  std::uint64_t messages = 0, bytes = 0, digest = 0;

  bool operator==(const MessageSummary&) const = default;
};
MessageSummary sent_to(const Schedule& schedule, int peer, DataType type_of_call);
MessageSummary received_from(const Schedule& schedule, int peer, DataType type_of_call);

// For each step that is a signal, the put that it tells of; of all other steps, and where there is none, nullptr. Of a
// valid schedule.
std::vector<const Step*> puts_of_signals(const Schedule& schedule);

}  // namespace waywiser
