#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "waywiser/comm/message/call.hpp"

namespace waywiser {

using Tag = std::uint64_t;
// What has come: the tag of a message, and its length.
struct Received {
  Tag tag = 0;
  std::size_t bytes = 0;
};

// A message's tag has two parts: the matched part says what the message belongs to; the description says what its
// sender was doing, and is compared after arrival: so differing calls are detected without extra bytes.
//   group:12 collective:1 source:15 label:16 | kind:5 type:4 op:4 root:7
// The label is the user's tag, or the number of the collective. If a call has no root, the root bits hold the
// generation of the group's number, so that an unreceived message of a destroyed group is not taken by its successor.
// Between machines 64 secret bits of the job are XORed to UCX's tag (UcxMessages::set_tag_key): without them, each try
// hits one of the n tags for which a rank waits with a probability of n / 2^64; if a try hits only the matched part,
// the call throws.
inline constexpr int description_bits = 20, root_bits = 7;
inline constexpr Tag root_mask = (Tag{1} << root_bits) - 1;
inline constexpr Tag matched_bits = ~Tag{0} << description_bits;
inline constexpr int group_shift = 52;
inline constexpr int largest_label = 0xffff;
inline constexpr std::uint32_t most_groups = (1u << 12) - 1;  // the last number is for rendezvous

constexpr bool has_root(CallKind kind) {
  return kind == CallKind::broadcast || kind == CallKind::reduce || kind == CallKind::gather ||
         kind == CallKind::scatter;
}

constexpr Tag make_tag(std::uint32_t group, bool collective, int source, std::uint64_t label, const Call& call,
                       std::uint32_t generation = 0) {
  return Tag{group} << group_shift | Tag{collective} << 51 | static_cast<Tag>(source) << 36 |
         (label & largest_label) << description_bits | static_cast<Tag>(call.kind) << 15 |
         static_cast<Tag>(call.type) << 11 | static_cast<Tag>(call.op) << root_bits |
         (has_root(call.kind) ? static_cast<Tag>(call.root) & root_mask : (generation & root_mask) ^ root_mask);
}

// Whether the message belongs to a collective. Messages of a neighbour exchange count as plain messages.
constexpr bool is_of_collective(Tag tag) {
  return (tag >> 51 & 1) != 0 && (tag >> 15 & 0x1f) != static_cast<Tag>(CallKind::neighbor_exchange);
}

// Replaces the call's kind in the header that precedes a message sent by rails; the header has its tag and length.
constexpr Tag head_mark = Tag{0x1e} << 15;
constexpr Tag head_tag(Tag tag) { return (tag & matched_bits) | head_mark; }
constexpr bool is_head(Tag tag) { return (tag & Tag{0x1f} << 15) == head_mark; }

// The sender's rank in its group.
constexpr int source_of(Tag tag) { return static_cast<int>(tag >> 36 & 0x7fff); }

// The user's tag, or the number of the collective.
constexpr int label_of(Tag tag) { return static_cast<int>(tag >> description_bits & largest_label); }

// What is wrong with a message that arrived for a receive of `bytes` with the tag `expected`; `source` is its rank.
std::string why_unlike(const Received& info, Tag expected, std::size_t bytes, int source);
inline std::optional<std::string> unlike(const Received& info, Tag expected, std::size_t bytes, int source) {
  if (info.tag == expected && info.bytes == bytes) return {};
  return why_unlike(info, expected, bytes, source);
}

}  // namespace waywiser
