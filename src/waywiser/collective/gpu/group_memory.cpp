#include "waywiser/collective/gpu/group_memory.hpp"

#include <algorithm>
#include <array>

#include "waywiser/collective/gpu/copy_steps.hpp"
#include "waywiser/collective/messages/stream_messages.hpp"
#include "waywiser/comm/peer_memory/receive_arena.hpp"
#include "waywiser/policy/copy_defaults.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr Bytes least_unit = defaults::slice_least;  // what one kernel takes of each rank, in any slice
constexpr unsigned fused_steps = 8, message_steps = 9;
constexpr double share_of_fused = 0.55;

Bytes in_pages(Bytes bytes) { return (bytes + 4095) / 4096 * 4096; }

// Halved in each step. At step 0 an all_reduce up to 1 MiB is one kernel.
FusedOptions fused_at_step(int ranks, unsigned step) {
  const auto all = static_cast<Bytes>(ranks);
  FusedOptions options;
  options.ll_bytes = std::max((defaults::slice_ll >> step) / (all - 1), least_unit);
  options.ll128_bytes = std::max(defaults::slice_ll128 >> step, (least_unit * all + 1) / 2);
  options.bulk_bytes = std::max(defaults::slice_bulk >> step, 2 * least_unit);
  return options;
}

// At step 0 messages have as much room as a pair of GPUs can use.
messages::Layout messages_at_step(int ranks, unsigned step) {
  messages::Layout layout{static_cast<std::uint32_t>(ranks)};
  layout.ll_piece = std::max(layout.ll_piece >> step, static_cast<std::uint32_t>(messages::least_ll_piece));
  layout.ll_channels = step <= 2 ? messages::channels : std::max(messages::channels >> (step - 2), 8u);
  layout.line_pairs = std::max(layout.line_pairs >> step, 1u);
  layout.bulk_piece = std::max(layout.bulk_piece >> step, 512u);
  return layout;
}

// The first step at which a group takes at most `bytes`.
std::optional<GroupMemory> no_more_than(int ranks, Bytes bytes) {
  GroupMemory memory{ranks, {}, {}};
  const auto is_enough = [&](unsigned step) {
    memory.messages = messages_at_step(ranks, step);
    return memory.bytes() <= bytes;
  };
  for (unsigned step = 0; step < fused_steps; ++step) {
    memory.fused = fused_at_step(ranks, step);
    const Bytes fused = FusedCollective::bytes_for(ranks, memory.fused);
    const bool fits = static_cast<double>(fused) <= share_of_fused * static_cast<double>(bytes);
    for (unsigned each = 0; (fits || step + 1 == fused_steps) && each < message_steps; ++each)
      if (is_enough(each)) return memory;
  }
  return {};
}

}  // namespace

Bytes GroupMemory::fused_at() const { return ReceiveArena::header_bytes; }
Bytes GroupMemory::messages_at() const { return in_pages(fused_at() + FusedCollective::bytes_for(ranks, fused)); }
Bytes GroupMemory::bytes() const { return in_pages(messages_at() + StreamMessages::bytes_for(messages)); }

std::optional<GroupMemory> GroupMemory::within(int ranks, Bytes share, Bytes most) {
  if (auto memory = no_more_than(ranks, std::min(share, most))) return memory;
  const GroupMemory least{ranks, fused_at_step(ranks, fused_steps - 1), messages_at_step(ranks, message_steps - 1)};
  if (least.bytes() > most) return {};
  return least;
}

std::span<const FusedOptions> larger_memories() {
  constexpr Bytes ends = 4096;  // of the ranks' parts, which are rounded up
  static constexpr std::array<FusedOptions, 1> all{
      FusedOptions{defaults::apart_ll, defaults::apart_bulk + ends, defaults::apart_ll128}};
  return all;
}

Bytes group_bytes_apart(int ranks, Bytes largest) {
  if (largest <= most_in_slice || ranks < 2 || ranks > static_cast<int>(block::max_ranks)) return 0;
  Bytes all = CopyLanding::of(ranks, defaults::copied_slot).bytes();
  for (const FusedOptions& options : larger_memories()) all += in_pages(FusedCollective::landing_bytes(ranks, options));
  return all;
}

}  // namespace waywiser
