#pragma once

#include <optional>
#include <span>
#include <string>

#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// An error in one rank's schedule, for people: rounds that do not ascend, blocks outside their buffer, steps of one
// round that touch data which another one writes, a put without a signal. Empty: it can run.
std::optional<std::string> why_invalid(const Schedule& schedule);

// An error between all ranks' schedules, each valid by itself: sends and receives do not match.
std::optional<std::string> why_unlike(std::span<const Schedule> schedules);

// Summarises the messages between a rank and a peer, so that ranks can compare them without each other's schedules:
// their number, and a hash of their sizes, types and order.
struct MessageSummary {
  std::uint64_t messages = 0, bytes = 0, digest = 0;

  bool operator==(const MessageSummary&) const = default;
};
MessageSummary sent_to(const Schedule& schedule, int peer, DataType type_of_call);
MessageSummary received_from(const Schedule& schedule, int peer, DataType type_of_call);

// For each step that is a signal, its put; nullptr for signals without a put and for all other steps. Requires a valid
// schedule.
std::vector<const Step*> puts_of_signals(const Schedule& schedule);

}  // namespace waywiser
