#include "waywiser/collective/device_schedule/landing_plan.hpp"

#include <algorithm>

#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser::program {
namespace {

using Kind = ProgramAlgorithm::Kind;

constexpr std::uint64_t line = 128, most_pieces = 65536;

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

std::uint32_t pieces_of(std::uint64_t bytes, std::uint64_t piece) {
  return static_cast<std::uint32_t>(std::max<std::uint64_t>((bytes + piece - 1) / piece, 1));
}

std::uint64_t default_piece(std::uint64_t bytes) {
  return round_up(std::max<std::uint64_t>(bytes / defaults::program_pieces, defaults::program_piece), 16);
}

std::uint32_t default_blocks() { return static_cast<std::uint32_t>(defaults::program_blocks); }

void add(std::uint64_t& digest, const MessagePlan& plan) {
  for (const std::uint64_t value : {static_cast<std::uint64_t>(plan.kind), std::uint64_t{plan.pieces}, plan.piece}) {
    digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
    digest ^= digest >> 29;
  }
}

}  // namespace

MessagePlan MessagePlan::of(std::uint64_t bytes, bool put, bool direct, const ProgramAlgorithm& algorithm) {
  MessagePlan plan;
  const bool wanted = is_flagged(algorithm.kind), flagged = wanted && !put && bytes != 0;
  const bool ll = flagged && algorithm.kind == Kind::ll, ll128 = flagged && !ll;
  plan.kind = direct ? Kind::direct : flagged ? algorithm.kind : Kind::bulk;
  const bool chosen = algorithm.piece != 0 && flagged == wanted;
  const std::uint64_t by_default = ll      ? std::uint64_t{defaults::program_ll_piece}
                                   : ll128 ? std::uint64_t{defaults::program_ll128_piece}
                                           : default_piece(bytes);
  plan.piece = round_up(std::max(chosen ? algorithm.piece : by_default, std::uint64_t{pieces_of(bytes, most_pieces)}),
                        ll128 ? block::data_bytes_of_pair : 16);
  plan.pieces = pieces_of(bytes, plan.piece);
  plan.spreads = flagged && !chosen;
  plan.slot_at = flagged ? 0 : round_up(plan.pieces * sizeof(std::uint64_t), line);
  const std::uint64_t slot = direct  ? 0
                             : ll    ? round_up(bytes, 8) * 2
                             : ll128 ? block::pairs_for(bytes) * block::wire_bytes_of_pair
                                     : bytes;
  plan.bytes = round_up(plan.slot_at + slot, line);
  return plan;
}

std::string text(const MessagePlan& plan) {
  return waywiser::text(ProgramAlgorithm{plan.kind, plan.spreads ? 0 : plan.piece, 0});
}

MessagePlan plan_of_copy(std::uint64_t bytes) {
  MessagePlan plan;
  plan.piece = default_piece(bytes);
  plan.pieces = pieces_of(bytes, plan.piece);
  return plan;
}

MessagePlans MessagePlans::of(const Schedule& schedule, DataType type_of_call, const std::vector<bool>& direct,
                              const ProgramAlgorithms& algorithms) {
  MessagePlans plans;
  plans.of_steps.resize(schedule.steps.size());
  const std::vector<const Step*> puts = puts_of_signals(schedule);
  std::uint32_t messages = 0;
  const auto plan = [&](std::size_t step, const Block& block, bool put) {
    const std::uint64_t bytes = block.count == 0 ? 0 : block.count * bytes_of_element(schedule, block, type_of_call);
    const ProgramAlgorithm algorithm = algorithms.of(bytes);
    const std::uint32_t blocks = algorithm.blocks != 0 ? algorithm.blocks : default_blocks();
    plans.most_blocks = messages++ == 0 ? blocks : std::max(plans.most_blocks, blocks);
    return MessagePlan::of(bytes, put, step < direct.size() && direct[step], algorithm);
  };
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (receives(step.kind)) plans.of_steps[i] = plan(i, step.destination, step.kind == StepKind::wait);
    if (step.kind == StepKind::send) plans.of_steps[i] = plan(i, step.source, false);
    if (step.kind != StepKind::signal) continue;
    const Step& stores = puts[i] == nullptr ? step : *puts[i];
    const auto storing = static_cast<std::size_t>(&stores - schedule.steps.data());
    plans.of_steps[i] = plans.of_steps[storing] = plan(storing, puts[i] == nullptr ? Block{} : stores.source, true);
  }
  if (messages == 0) plans.most_blocks = default_blocks();
  return plans;
}

LandingPlan LandingPlan::of(const Schedule& schedule, DataType type_of_call, const MessagePlans& messages) {
  LandingPlan plan;
  for (int peer = 0; peer < schedule.ranks; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    plan.base[index] = plan.turn;
    plan.sent[index] = sent_to(schedule, peer, type_of_call);
    plan.received[index] = received_from(schedule, peer, type_of_call);
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      if (step.peer != peer) continue;
      const MessagePlan& message = messages.of_steps[i];
      if (sends(step.kind)) add(plan.plans_sent[index], message);
      if (!receives(step.kind)) continue;
      add(plan.plans_received[index], message);
      const Block& block = step.destination;
      const std::size_t bytes = block.count == 0 ? 0 : block.count * bytes_of_element(schedule, block, type_of_call);
      if (message.kind != Kind::direct) plan.longest = std::max<std::uint64_t>(plan.longest, bytes);
      plan.turn += message.bytes;
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
  for (std::size_t from = 0; from < plans.size(); ++from)
    for (std::size_t to = 0; to < plans.size(); ++to)
      if (plans[from].plans_sent[to] != plans[to].plans_received[from])
        return "rank " + std::to_string(from) + " sends messages to rank " + std::to_string(to) +
               " by other algorithms than it takes them by";
  return {};
}

}  // namespace waywiser::program
