#pragma once

#include <optional>
#include <string>

#include "waywiser/comm/session/call.hpp"
#include "waywiser/transport/ucx/ucx_functions.hpp"

namespace waywiser {

// A message's tag has two parts: the matched part says what the message belongs to; the description says what its
// sender was doing, and is compared after arrival: so differing calls are detected without extra bytes.
//   group:12 collective:1 source:15 label:16 | kind:5 type:4 op:4 root:7
// The label is the user's tag, or the number of the collective. If a call has no root, the root bits hold the
// generation of the group's number, so that an unreceived message of a destroyed group is not taken by its successor.
// Between machines 64 secret bits of the job are XORed to UCX's tag (Engine::set_tag_key): without them, each try hits
// one of the n tags for which a rank waits with a probability of n / 2^64; if a try hits only the matched part, the
// call throws.
inline constexpr int description_bits = 20, root_bits = 7;
inline constexpr ucp_tag_t root_mask = (ucp_tag_t{1} << root_bits) - 1;
inline constexpr ucp_tag_t matched_bits = ~ucp_tag_t{0} << description_bits;
inline constexpr int group_shift = 52;
inline constexpr int largest_label = 0xffff;
inline constexpr std::uint32_t most_groups = (1u << 12) - 1;  // the last number is for rendezvous

constexpr bool has_root(CallKind kind) {
  return kind == CallKind::broadcast || kind == CallKind::reduce || kind == CallKind::gather ||
         kind == CallKind::scatter;
}

constexpr ucp_tag_t make_tag(std::uint32_t group, bool collective, int source, std::uint64_t label, const Call& call,
                             std::uint32_t generation = 0) {
  return ucp_tag_t{group} << group_shift | ucp_tag_t{collective} << 51 | static_cast<ucp_tag_t>(source) << 36 |
         (label & largest_label) << description_bits | static_cast<ucp_tag_t>(call.kind) << 15 |
         static_cast<ucp_tag_t>(call.type) << 11 | static_cast<ucp_tag_t>(call.op) << root_bits |
         (has_root(call.kind) ? static_cast<ucp_tag_t>(call.root) & root_mask : (generation & root_mask) ^ root_mask);
}

// Whether the message belongs to a collective. Messages of a neighbour exchange count as plain messages.
constexpr bool is_of_collective(ucp_tag_t tag) {
  return (tag >> 51 & 1) != 0 && (tag >> 15 & 0x1f) != static_cast<ucp_tag_t>(CallKind::neighbor_exchange);
}

// Replaces the call's kind in the header that precedes a message sent by rails; the header has its tag and length.
constexpr ucp_tag_t head_mark = ucp_tag_t{0x1e} << 15;
constexpr ucp_tag_t head_tag(ucp_tag_t tag) { return (tag & matched_bits) | head_mark; }
constexpr bool is_head(ucp_tag_t tag) { return (tag & ucp_tag_t{0x1f} << 15) == head_mark; }

// The sender's rank in its group.
constexpr int source_of(ucp_tag_t tag) { return static_cast<int>(tag >> 36 & 0x7fff); }

// The user's tag, or the number of the collective.
constexpr int label_of(ucp_tag_t tag) { return static_cast<int>(tag >> description_bits & largest_label); }

// What is wrong with a message that arrived for a receive of `bytes` with the tag `expected`; `source` is its rank.
std::string why_unlike(const ucp_tag_recv_info_t& info, ucp_tag_t expected, std::size_t bytes, int source);
inline std::optional<std::string> unlike(const ucp_tag_recv_info_t& info, ucp_tag_t expected, std::size_t bytes,
                                         int source) {
  if (info.sender_tag == expected && info.length == bytes) return {};
  return why_unlike(info, expected, bytes, source);
}

}  // namespace waywiser
