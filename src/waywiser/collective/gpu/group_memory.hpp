#pragma once

#include <optional>
#include <span>

#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/messages/message_landing.hpp"

namespace waywiser {

// How a group divides its slice of the receive arena (comm/peer_memory/receive_arena.hpp): the same at all ranks.
// Operations and messages up to 8 KiB are carried out alike whatever the size of the slice; larger ones go in more
// pieces where it is smaller.
struct GroupMemory {
  int ranks = 0;
  FusedOptions fused;
  messages::Layout messages;

  // From the begin of the slice: a word of its own, what fused kernels need, and what messages need.
  static constexpr Bytes own_word_at = 64;
  Bytes fused_at() const;
  Bytes messages_at() const;
  Bytes bytes() const;

  // The largest for a group of 2 to 8 ranks that takes no more than `share` if it can, and no more than `most`.
  // Nothing: there is none.
  static std::optional<GroupMemory> within(int ranks, Bytes share, Bytes most);
};

// What the memory that ranks set aside on their GPUs for a group can come to, besides the arena's limit for all groups
// together: at most this, once operations of more than `largest` bytes a block have been enqueued. 0 up to 1 MiB, and
// for groups of more than 8 ranks, which no kernel serves.
Bytes group_bytes_apart(int ranks, Bytes largest);

// A call whose blocks are no larger gets along with the slice, in pieces if need be.
inline constexpr Bytes most_in_slice = Bytes{1} << 20;
// What larger ones may take apart from it, by size.
std::span<const FusedOptions> larger_memories();

}  // namespace waywiser
