#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser::program {

// How a message travels: the same at both ends.
struct MessagePlan {
  bool ll = false;
  std::uint32_t pieces = 1;
  std::uint64_t piece = 16;
  std::uint64_t slot_at = 0, bytes = 0;  // of its place: flags, then the slot

  static MessagePlan of(std::uint64_t bytes, bool put);
};
// Of a copy within a GPU.
MessagePlan plan_of_copy(std::uint64_t bytes);

// What a rank needs for others to write into, and tells them: by peer, where in a turn their messages begin, one after
// the other.
struct LandingPlan {
  std::array<std::uint64_t, block::max_ranks> base{};
  std::uint64_t turn = 0;     // bytes of one
  std::uint64_t longest = 0;  // message, in bytes
  std::array<MessageSummary, block::max_ranks> sent{}, received{};

  static LandingPlan of(const Schedule& schedule, DataType type_of_call);
  std::uint64_t bytes() const { return begun_bytes + 2 * turn; }
};

// What does not fit between the ranks, in words; the same at all ranks.
std::optional<std::string> why_unlike(std::span<const LandingPlan> plans);

}  // namespace waywiser::program
