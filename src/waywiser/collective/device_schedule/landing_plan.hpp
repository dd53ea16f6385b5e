#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/collective/device_schedule/program_algorithm.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser::program {

// How a message travels; equal at both ends.
struct MessagePlan {
  ProgramAlgorithm::Kind kind = ProgramAlgorithm::Kind::bulk;
  std::uint32_t pieces = 1;
  std::uint64_t piece = 16;
  bool spreads = false;                  // `piece` is the least: an end may cut the message as it likes
  std::uint64_t slot_at = 0, bytes = 0;  // offset and size of its place: flags, then the slot

  // `direct`: its ends have agreed on that. What is put does not go by LL or LL128.
  static MessagePlan of(std::uint64_t bytes, bool put, bool direct, const ProgramAlgorithm& algorithm);
};
// With its piece: "direct(piece=16K)".
std::string text(const MessagePlan& plan);
// For a copy within a GPU.
MessagePlan plan_of_copy(std::uint64_t bytes);

// How all messages of a rank travel.
struct MessagePlans {
  std::vector<MessagePlan> of_steps;  // a put has the plan of its signal; steps without a message have any
  std::uint32_t most_blocks = 1;      // of the kernel

  // `direct`: the schedule's steps whose data need no slot; it may be shorter than the schedule. Throws like
  // ProgramAlgorithms::of.
  static MessagePlans of(const Schedule& schedule, DataType type_of_call, const std::vector<bool>& direct,
                         const ProgramAlgorithms& algorithms);
};

// The memory of a rank into which others write, as it tells them: for each peer, where that peer's messages begin
// within a turn, one after another. A direct message has flags only.
struct LandingPlan {
  std::array<std::uint64_t, block::max_ranks> base{};
  std::uint64_t turn = 0;     // bytes of one
  std::uint64_t longest = 0;  // message with a slot, in bytes
  std::array<MessageSummary, block::max_ranks> sent{}, received{};
  std::array<std::uint64_t, block::max_ranks> plans_sent{}, plans_received{};  // digests of MessagePlans

  // Requires a valid schedule.
  static LandingPlan of(const Schedule& schedule, DataType type_of_call, const MessagePlans& messages);
  std::uint64_t bytes() const { return begun_bytes + 2 * turn; }
};

// How the ranks' plans mismatch, in words; the same at all ranks.
std::optional<std::string> why_unlike(std::span<const LandingPlan> plans);

}  // namespace waywiser::program
