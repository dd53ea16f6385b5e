#pragma once

#include <cstdint>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/kernels/block/exposed.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/block/tag.hpp"

namespace waywiser::fused {

inline constexpr unsigned most_blocks = 512;

// Where others put what they send to a rank: announcements, then flags and what is told beside them, LL, LL128 and
// bulk data, each twice: double-buffered, by the operation's parity. A rank that starts operation k + 2 has heard from
// all others in k + 1, so nobody still reads what belongs to k.
struct LandingLayout {
  std::uint32_t ranks = 0;
  std::uint64_t ll_bytes = 0;    // data that one rank sends by LL, a multiple of 16
  std::uint64_t bulk_bytes = 0;  // data that all ranks together push, a multiple of 4096
  std::uint64_t line_pairs = 0;  // that all ranks together send, a multiple of 16

  WAYWISER_DEVICE std::uint64_t flags(unsigned turn, unsigned shot) const {
    return block::max_ranks * sizeof(block::Announcement) + (std::uint64_t{turn} * 2 + shot) * ranks * most_blocks * 8;
  }
  WAYWISER_DEVICE std::uint64_t told(unsigned turn, unsigned shot) const {
    return flags(2, 0) + (std::uint64_t{turn} * 2 + shot) * ranks * most_blocks * 8;
  }
  WAYWISER_DEVICE std::uint64_t ll(unsigned turn) const {
    return told(2, 0) + std::uint64_t{turn} * ranks * ll_bytes * 2;
  }
  WAYWISER_DEVICE std::uint64_t ll128(unsigned turn, unsigned shot) const {
    return (ll(2) + 4095) / 4096 * 4096 + (std::uint64_t{turn} * 2 + shot) * line_pairs * block::wire_bytes_of_pair;
  }
  WAYWISER_DEVICE std::uint64_t bulk(unsigned turn, unsigned shot) const {
    return ll128(2, 0) + (std::uint64_t{turn} * 2 + shot) * bulk_bytes;
  }
  WAYWISER_DEVICE std::uint64_t bytes() const { return bulk(2, 0); }
  // From the begin: what must be cleared before the first operation.
  WAYWISER_DEVICE std::uint64_t numbered() const { return ll128(2, 0); }
};

// In the memory of the rank's GPU; only its kernels touch it.
struct alignas(16) FusedState {
  // most_blocks for each operation before, and the shares of those blocks of the present one that have sent.
  std::uint64_t progress = 0;
};

struct FusedArguments {
  std::byte* landing[block::max_ranks];  // of each rank, as this GPU reaches it
  FusedState* state;
  block::Notice* notice;
  const block::Exposed* exposed;  // of each slot (0: nothing), max_ranks entries
  LandingLayout layout;
  std::uint32_t rank;
  std::uint64_t deadline_ns;  // of one wait
  std::uint32_t share, rest;  // of most_blocks: what each block adds to the progress, and what the first adds besides
};

// One exchange between all ranks. Block i of a buffer begins at i * stride.
struct FusedWork {
  const std::byte* input;
  std::byte* output;
  std::uint64_t bytes;   // of a block
  std::uint64_t total;   // of all blocks, if the last ones are shorter; else 0
  std::uint64_t stride;  // between blocks
  bool scattered;        // block i goes to rank i; else the only block goes to all
  bool exact;            // all addresses and lengths are multiples of a word: 8 bytes for LL, else 16
  bool split;            // in two shots: rank i reduces block i, which goes to all
  bool reduced;          // what arrives is reduced; else the block of rank i becomes block i of the output
  ReduceOp op;
  DataType type;
  std::int32_t root;                     // the only rank that has data; -1: all have
  std::int32_t taker;                    // the only rank that takes the result; -1: all take it
  std::uint32_t slot;                    // of the exposed memory that this rank's output lies in; 0: of none
  std::uint64_t description, signature;  // of the call that this is a part of

  WAYWISER_DEVICE bool has_data(unsigned rank) const { return root < 0 || static_cast<int>(rank) == root; }
  WAYWISER_DEVICE bool is_taken_by(unsigned rank) const { return taker < 0 || static_cast<int>(rank) == taker; }
  WAYWISER_DEVICE std::uint64_t bytes_of_block(unsigned block) const {
    if (total == 0) return bytes;
    const std::uint64_t before = block * stride;
    const std::uint64_t left = before < total ? total - before : 0;
    return left < bytes ? left : bytes;
  }
};

WAYWISER_DEVICE inline block::LlPacket* packet_at(const FusedArguments& terms, unsigned rank, unsigned turn,
                                                  unsigned from, std::uint64_t unit) {
  return reinterpret_cast<block::LlPacket*>(terms.landing[rank] + terms.layout.ll(turn) +
                                            std::uint64_t{from} * terms.layout.ll_bytes * 2) +
         unit;
}

// In the memory of `rank`, what `from` is in.
WAYWISER_DEVICE inline block::Announcement* announcement_at(const FusedArguments& terms, unsigned rank, unsigned from) {
  return reinterpret_cast<block::Announcement*>(terms.landing[rank]) + from;
}

// The tag of an operation.
WAYWISER_DEVICE inline std::uint64_t* flag_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                              unsigned from, unsigned block) {
  return reinterpret_cast<std::uint64_t*>(terms.landing[rank] + terms.layout.flags(turn, shot)) +
         std::size_t{from} * most_blocks + block;
}
// The number of an operation; above it 32 bits that the sender tells before its flag.
WAYWISER_DEVICE inline std::uint64_t* told_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                              unsigned from, unsigned block) {
  return reinterpret_cast<std::uint64_t*>(terms.landing[rank] + terms.layout.told(turn, shot)) +
         std::size_t{from} * most_blocks + block;
}

// A block of `stride` bytes for each rank that sends.
WAYWISER_DEVICE inline std::byte* bulk_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                          unsigned from, std::uint64_t stride) {
  return terms.landing[rank] + terms.layout.bulk(turn, shot) + from * stride;
}

}  // namespace waywiser::fused
