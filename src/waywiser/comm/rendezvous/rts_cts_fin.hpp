#pragma once

#include <array>
#include <string>

#include "waywiser/comm/session/tag.hpp"
#include "waywiser/device/shared_region.hpp"

namespace waywiser {

// A message out of GPU memory begins with a zero-byte RTS. Its tag equals the message's tag except for the description
// bits, which carry a marker and a sequence number. On one machine the RTS also says where the bytes lie: the receiver
// may read them there, and then replies FIN. Otherwise the receiver replies with the destination (CTS); the sender
// writes the bytes there and sends FIN, or sends them in pieces. All messages after the RTS have tags of their own.
inline constexpr std::uint32_t rendezvous_group = most_groups;
inline constexpr unsigned rts_numbers = 1u << 11;

constexpr ucp_tag_t rts_mark = ucp_tag_t{0x1f} << 15;

constexpr ucp_tag_t rts_tag(ucp_tag_t tag, unsigned number) {
  return (tag & matched_bits) | rts_mark | (tag & ucp_tag_t{0xf} << 11) | number;
}
constexpr bool is_rts(ucp_tag_t tag) { return (tag & rts_mark) == rts_mark; }
constexpr unsigned rts_number(ucp_tag_t tag) { return tag & (rts_numbers - 1); }

// The tag of what `from`, a rank of the whole session, says after an RTS, as the message's sender or its receiver.
constexpr ucp_tag_t rest_tag(bool of_sender, int from, unsigned number) {
  return make_tag(rendezvous_group, of_sender, from, number, {});
}

// The tag of a message that both ranks should have copied (shared_copy.hpp) and that UCX carries instead.
constexpr ucp_tag_t left_to_ucx_tag(int from, std::uint32_t number) {
  constexpr unsigned rest = largest_label + 1 - rts_numbers;
  return make_tag(rendezvous_group, true, from, rts_numbers + number % rest, {});
}

enum class RendezvousWay : std::uint32_t { direct, pieces, read };

struct ReadyToSend {
  std::uint32_t element_type = 0;
  std::uint32_t readable = 0;  // whether the receiver may read `region`
  Bytes bytes = 0;
  SharedRegion region;
};

// Why a message is staged that neither end could copy directly: both reasons, if they differ.
inline std::string with_second_reason(std::string first, const char* what, const std::string& second) {
  if (second.empty() || first.find(second) != std::string::npos) return first;
  return std::move(first) + "; " + what + ": " + second;
}

inline constexpr std::uint32_t no_network_path = ~std::uint32_t{0};

struct ClearToSend {
  RendezvousWay way = RendezvousWay::pieces;
  std::uint32_t element_type = 0;
  std::uint32_t on_gpu = 0, gpu_index = 0;
  std::uint32_t ucx_reaches = 0;  // UCX can write to the destination
  Bytes bytes = 0;
  SharedRegion region;
  std::array<char, 128> why_not_direct{};
};

// RendezvousWay::direct: the bytes have arrived. RendezvousWay::pieces: the bytes follow in pieces; between machines by
// a way of the plan, if it has one.
struct Finished {
  RendezvousWay way = RendezvousWay::pieces;
  std::uint32_t network_path = no_network_path;
  std::array<char, 120> why_not_direct{};
};

}  // namespace waywiser
