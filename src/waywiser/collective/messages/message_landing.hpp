#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/block/exposed.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::messages {

// A message is cut into pieces, which blocks of threads carry, block i of the sender to block i of the receiver: this
// is a channel. Short messages travel as LL packets (data beside their number), medium ones as LL128 lines of 128
// bytes, if lines arrive whole, and long ones as bulk data with one flag per piece.
inline constexpr unsigned channels = 64;
inline constexpr std::uint64_t least_ll_piece = 1024;  // bytes of data
inline constexpr unsigned ll_slots = 4, ll128_slots = 4, bulk_slots = 2;

enum class Kind : std::uint32_t { ll, ll128, bulk };
inline constexpr unsigned kinds = 3;

// The specialisations of the kernel: only LL or only LL128 parts, with arrays that are aligned to words of 8 or 16
// bytes and hold whole words; or any parts. A narrower kernel has a lower latency.
enum class Fit : std::uint32_t { ll, ll128, long_ll128, any };
// For LL128: a pair of lines for every 16 threads.
inline constexpr std::uint64_t most_short_piece = 32 * block::data_bytes_of_pair;

// The memory of each rank's GPU into which others write: the number of this rank's pieces that each peer has taken; for
// each peer's last bulk pieces, the number, whether this and all later pieces are in the destination, and a part of the
// signature; each peer's destination for a bulk message (its first number, and an OutputPlace) with the tag of that
// message; and the slots that the peer's pieces use in turn. Peers count from 0, without the rank itself (peer_index).
// All ranks of a group use the same piece sizes.
struct Layout {
  std::uint32_t ranks = 0;
  std::uint32_t ll_channels = channels;  // the first channels, which alone carry LL
  std::uint32_t ll_piece = 4096;         // the most data in a piece: a multiple of least_ll_piece
  std::uint32_t line_pairs = 128;        // in a piece
  std::uint32_t bulk_piece = 128 << 10;  // the most data in a piece: a multiple of 16

  WAYWISER_DEVICE std::uint32_t peers() const { return ranks - 1; }
  WAYWISER_DEVICE std::uint64_t ll128_piece() const { return line_pairs * block::data_bytes_of_pair; }
  WAYWISER_DEVICE std::uint64_t entry(unsigned table, unsigned peer, unsigned channel) const {
    return ((std::uint64_t{table} * peers() + peer) * channels + channel) * 8;
  }
  WAYWISER_DEVICE std::uint64_t taken(Kind kind, unsigned peer, unsigned channel) const {
    return entry(static_cast<unsigned>(kind), peer, channel);
  }
  WAYWISER_DEVICE std::uint64_t place(unsigned peer, unsigned channel) const { return entry(kinds, peer, channel); }
  WAYWISER_DEVICE std::uint64_t place_tag(unsigned peer, unsigned channel) const {
    return entry(kinds + 1, peer, channel);
  }
  WAYWISER_DEVICE std::uint64_t come(unsigned peer, unsigned channel, unsigned slot) const {
    return entry(kinds + 2 + slot, peer, channel);
  }
  WAYWISER_DEVICE std::uint64_t ll(unsigned peer, unsigned channel, unsigned slot) const {
    return entry(kinds + 2 + bulk_slots, 0, 0) +
           ((std::uint64_t{peer} * ll_channels + channel) * ll_slots + slot) * ll_piece * 2;
  }
  WAYWISER_DEVICE std::uint64_t ll128(unsigned peer, unsigned channel, unsigned slot) const {
    return ll(peers(), 0, 0) +
           ((std::uint64_t{peer} * channels + channel) * ll128_slots + slot) * line_pairs * block::wire_bytes_of_pair;
  }
  WAYWISER_DEVICE std::uint64_t bulk(unsigned peer, unsigned channel, unsigned slot) const {
    return ll128(peers(), 0, 0) + ((std::uint64_t{peer} * channels + channel) * bulk_slots + slot) * bulk_piece;
  }
  // A slot of any kind; slots are slot_bytes apart, channels slot_bytes times the number of slots.
  WAYWISER_DEVICE std::uint64_t slot(Kind kind, unsigned peer, unsigned channel, unsigned slot) const {
    if (kind == Kind::ll) return ll(peer, channel, slot);
    return kind == Kind::ll128 ? ll128(peer, channel, slot) : bulk(peer, channel, slot);
  }
  WAYWISER_DEVICE std::uint32_t slot_bytes(Kind kind) const {
    if (kind == Kind::ll) return ll_piece * 2;
    return kind == Kind::ll128 ? line_pairs * static_cast<std::uint32_t>(block::wire_bytes_of_pair) : bulk_piece;
  }
  WAYWISER_DEVICE std::uint64_t bytes() const { return bulk(peers(), 0, 0); }
  // The bytes at the beginning that must be cleared before the first message.
  WAYWISER_DEVICE std::uint64_t numbered() const { return ll128(peers(), 0, 0); }
};

// The index of `other` among the peers of `rank`.
WAYWISER_DEVICE constexpr unsigned peer_index(unsigned rank, unsigned other) { return other - (other > rank ? 1 : 0); }

// Private to this rank: the numbers of its last pieces.
struct MessageState {
  std::uint64_t sent[kinds][block::max_ranks][channels];
  std::uint64_t received[kinds][block::max_ranks][channels];
};

struct MessageArguments {
  std::byte* landing[block::max_ranks];  // of each rank, as this GPU reaches it
  MessageState* state;
  block::Notice* notice;
  const block::Exposed* exposed;  // of each slot (0: none), max_ranks entries
  Layout layout;
  std::uint32_t rank;
  std::uint64_t deadline_ns;  // of one wait
};

// One direction, carried by the first `blocks` channels.
struct MessagePart {
  std::byte* data = nullptr;  // the sender only reads it
  std::uint64_t bytes = 0;
  std::uint64_t piece = 0;
  std::uint32_t peer = 0, blocks = 0;
  std::uint32_t slot = 0;  // of the exposed memory that contains the receiver's array; 0: none
  Kind kind = Kind::ll;
  std::uint64_t description = 0, signature = 0;  // of the message; the signature in the upper half
  // Precomputed for kernels: the receiver's slots for this sender, and the sender's counts of pieces taken.
  std::byte* slots = nullptr;
  std::uint64_t* taken = nullptr;
  std::uint32_t slot_bytes = 0;
};

// A part that this rank sends or receives.
inline MessagePart with_places(const MessageArguments& terms, MessagePart part, bool gives) {
  const unsigned sender = gives ? terms.rank : part.peer, receiver = gives ? part.peer : terms.rank;
  const unsigned there = peer_index(receiver, sender), here = peer_index(sender, receiver);
  part.slots = terms.landing[receiver] + terms.layout.slot(part.kind, there, 0, 0);
  part.taken = reinterpret_cast<std::uint64_t*>(terms.landing[sender] + terms.layout.taken(part.kind, here, 0));
  part.slot_bytes = terms.layout.slot_bytes(part.kind);
  return part;
}

inline Fit fit_of(const MessagePart& part) {
  const std::uint64_t word = part.kind == Kind::ll ? 8 : 16;
  if (part.kind == Kind::bulk || (reinterpret_cast<std::uintptr_t>(part.data) | part.bytes) % word != 0)
    return Fit::any;
  if (part.kind == Kind::ll) return Fit::ll;
  return part.piece <= most_short_piece ? Fit::ll128 : Fit::long_ll128;
}

// A send and a receive in one kernel; the send's blocks come first.
struct MessageWork {
  MessagePart give, take;
  bool places = false;                    // ranks have windows: receivers announce bulk destinations
  const std::uint32_t* failed = nullptr;  // as FusedWork::failed
};

inline Fit fit_of(const MessageWork& work) {
  const Fit give = fit_of(work.give), take = fit_of(work.take);
  if (work.give.blocks == 0) return take;
  return work.take.blocks == 0 || give == take ? give : Fit::any;
}

}  // namespace waywiser::messages
