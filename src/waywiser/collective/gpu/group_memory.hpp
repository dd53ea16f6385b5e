#pragma once

#include <optional>
#include <span>

#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/messages/message_landing.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

// How a group divides its slice of the receive arena (comm/peer_memory/receive_arena.hpp); equal at all ranks.
// Operations and messages up to 8 KiB run alike in a slice of any size; in a smaller slice larger ones need more
// pieces.
struct GroupMemory {
  int ranks = 0;
  FusedOptions fused;
  messages::Layout messages;

  // Offsets from the beginning of the slice: a word of its own, the memory of fused kernels, and that of messages.
  static constexpr Bytes own_word_at = 64;
  Bytes fused_at() const;
  Bytes messages_at() const;
  Bytes bytes() const;

  // The largest layout for a group of 2 to 8 ranks that takes at most `share` if possible, and at most `most`. Empty:
  // there is none.
  static std::optional<GroupMemory> within(int ranks, Bytes share, Bytes most);
};

// An upper bound of the memory that ranks set aside on their GPUs for a group, besides the arena's common limit, once
// operations of more than `largest` bytes a block have been enqueued. 0 up to 1 MiB, and for groups of more than 8
// ranks, which no kernel serves.
Bytes group_bytes_apart(int ranks, Bytes largest);

// Calls with blocks up to this size run within the slice, in pieces if necessary.
inline constexpr Bytes most_in_slice = defaults::slice_ll128;
// Separate memories for larger operations, by size.
std::span<const FusedOptions> larger_memories();

}  // namespace waywiser
