#include "waywiser/collective/device_schedule/landing_plan.hpp"

#include <algorithm>

#include "waywiser/policy/defaults.hpp"

namespace waywiser::program {
namespace {

constexpr std::uint64_t ll_piece = 4096, line = 128;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::uint32_t pieces_of(std::uint64_t bytes, std::uint64_t piece) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>((bytes + piece - 1) / piece, 1));
}

}  // namespace

MessagePlan MessagePlan::of(std::uint64_t bytes, bool put, bool direct) {
  MessagePlan plan;
  plan.ll = !put && bytes != 0 && bytes <= defaults::program_ll;
  plan.piece = plan.ll
                   ? ll_piece
                   : round_up(std::max<std::uint64_t>(bytes / defaults::program_pieces, defaults::program_piece), 16);
  plan.pieces = pieces_of(bytes, plan.piece);
  plan.slot_at = plan.ll ? 0 : round_up(plan.pieces * sizeof(std::uint64_t), line);
  const std::uint64_t slot = direct ? 0 : plan.ll ? round_up(bytes, 8) * 2 : bytes;
  plan.bytes = round_up(plan.slot_at + slot, line);
  return plan;
}

MessagePlan plan_of_copy(std::uint64_t bytes) {
  MessagePlan plan;
  plan.piece = round_up(std::max<std::uint64_t>(bytes / defaults::program_pieces, defaults::program_piece), 16);
  plan.pieces = pieces_of(bytes, plan.piece);
  return plan;
}

LandingPlan LandingPlan::of(const Schedule& schedule, DataType type_of_call, const std::vector<bool>& direct) {
  LandingPlan plan;
  for (int peer = 0; peer < schedule.ranks; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    plan.base[index] = plan.turn;
    plan.sent[index] = sent_to(schedule, peer, type_of_call);
    plan.received[index] = received_from(schedule, peer, type_of_call);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      if (!receives(step.kind) || step.peer != peer) continue;
      const bool is_direct = i < direct.size() && direct[i];
      const Block& block = step.destination;
      const std::size_t bytes = block.count == 0 ? 0 : block.count * bytes_of_element(schedule, block, type_of_call);
      if (!is_direct) plan.longest = std::max<std::uint64_t>(plan.longest, bytes);
      plan.turn += MessagePlan::of(bytes, step.kind == StepKind::wait, is_direct).bytes;
    }
  }
  return plan;
}

std::optional<std::string> why_unlike(std::span<const LandingPlan> plans) {
  const auto text = [](const MessageSummary& summary) {
    return std::to_string(summary.messages) + " messages of " + std::to_string(summary.bytes) + " bytes";
  };
  for (std::size_t from = 0; from < plans.size(); ++from)
    for (std::size_t to = 0; to < plans.size(); ++to) {
      const MessageSummary &sent = plans[from].sent[to], &received = plans[to].received[from];
      if (sent == received) continue;
      const bool sizes = sent.messages != received.messages || sent.bytes != received.bytes;
      return "rank " + std::to_string(from) + " sends " + text(sent) + " to rank " + std::to_string(to) +
             ", which takes " + text(received) + (sizes ? "" : ", of other sizes or types");
    }
  return {};
}

}  // namespace waywiser::program
