#pragma once

#include "waywiser/comm/message/tag.hpp"

namespace waywiser {

// A message out of GPU memory begins with a zero-byte RTS. Its tag equals the message's tag except for the description
// bits, which carry a marker and a sequence number. On one machine the RTS also says where the bytes lie: the receiver
// may read them there, and then replies FIN. Otherwise the receiver replies with the destination (CTS); the sender
// writes the bytes there and sends FIN, or sends them in pieces. All messages after the RTS have tags of their own.
inline constexpr std::uint32_t rendezvous_group = most_groups;
inline constexpr unsigned rts_numbers = 1u << 11;

constexpr Tag rts_mark = Tag{0x1f} << 15;

constexpr Tag rts_tag(Tag tag, unsigned number) {
  return (tag & matched_bits) | rts_mark | (tag & Tag{0xf} << 11) | number;
}
constexpr bool is_rts(Tag tag) { return (tag & rts_mark) == rts_mark; }
constexpr unsigned rts_number(Tag tag) { return tag & (rts_numbers - 1); }

// The tag of what `from`, a rank of the whole session, says after an RTS, as the message's sender or its receiver.
constexpr Tag rest_tag(bool of_sender, int from, unsigned number) {
  return make_tag(rendezvous_group, of_sender, from, number, {});
}

// The tag of a message that both ranks should have copied (shared_memory/shared_copy.hpp) and that UCX carries instead.
constexpr Tag left_to_ucx_tag(int from, std::uint32_t number) {
  constexpr unsigned rest = largest_label + 1 - rts_numbers;
  return make_tag(rendezvous_group, true, from, rts_numbers + number % rest, {});
}

}  // namespace waywiser
