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

// The layout of a rank's landing memory: announcements, then flags with a word beside each, LL, LL128 and bulk data.
// Double-buffered by the operation's parity: a rank that starts operation k + 2 has heard from all others in k + 1, so
// nobody still reads the data of k.
struct LandingLayout {
  std::uint32_t ranks = 0;
  std::uint64_t ll_bytes = 0;    // data that one rank sends by LL, a multiple of 16
  std::uint64_t bulk_bytes = 0;  // data that all ranks push together, a multiple of 4096
  std::uint64_t line_pairs = 0;  // sent by all ranks together, a multiple of 16

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
  // The bytes at the beginning that must be cleared before the first operation.
  WAYWISER_DEVICE std::uint64_t numbered() const { return ll128(2, 0); }
};

// In the memory of the rank's GPU; only its kernels touch it.
struct alignas(16) FusedState {
  // Grows by most_blocks per finished operation, plus the shares of the blocks of the present one that have sent.
  std::uint64_t progress = 0;
};

struct FusedArguments {
  std::byte* landing[block::max_ranks];  // of each rank, as this GPU reaches it
  FusedState* state;
  block::Notice* notice;
  const block::Exposed* exposed;  // of each slot (0: none), max_ranks entries
  LandingLayout layout;
  std::uint32_t rank;
  std::uint64_t deadline_ns;  // of one wait
  std::uint32_t share, rest;  // of most_blocks: each block's step of the progress, and the first block's extra
};

// One exchange between all ranks. Block i of a buffer begins at i * stride.
struct FusedWork {
  const std::byte* input;
  std::byte* output;
  std::uint64_t bytes;   // of a block
  std::uint64_t total;   // of all blocks if the last ones are shorter; else 0
  std::uint64_t stride;  // between blocks
  bool scattered;        // block i goes to rank i; else the only block goes to all
  bool exact;            // all addresses and lengths are multiples of a word: LL 8 bytes, else 16
  bool split;            // two shots: rank i reduces block i, then sends it to all
  bool reduced;          // arriving data are reduced; else rank i's block becomes block i of the output
  ReduceOp op;
  DataType type;
  std::int32_t root;                     // the only rank with data; -1: all ranks
  std::int32_t taker;                    // the only rank that gets the result; -1: all ranks
  std::uint32_t slot;                    // of the exposed memory that contains this rank's output; 0: none
  std::uint64_t description, signature;  // of the call that this belongs to
  // Last, as only kernels that may leave read it. Not 0: an earlier operation has failed, and this one ends at once.
  const std::uint32_t* failed;  // nullptr: a failure traps

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

// In the memory of `rank`: the operation of `from`.
WAYWISER_DEVICE inline block::Announcement* announcement_at(const FusedArguments& terms, unsigned rank, unsigned from) {
  return reinterpret_cast<block::Announcement*>(terms.landing[rank]) + from;
}

// The tag of an operation.
WAYWISER_DEVICE inline std::uint64_t* flag_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                              unsigned from, unsigned block) {
  return reinterpret_cast<std::uint64_t*>(terms.landing[rank] + terms.layout.flags(turn, shot)) +
         std::size_t{from} * most_blocks + block;
}
// The number of an operation; its upper 32 bits hold a value that the sender stores before its flag.
WAYWISER_DEVICE inline std::uint64_t* told_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                              unsigned from, unsigned block) {
  return reinterpret_cast<std::uint64_t*>(terms.landing[rank] + terms.layout.told(turn, shot)) +
         std::size_t{from} * most_blocks + block;
}

// A block of `stride` bytes for each sending rank.
WAYWISER_DEVICE inline std::byte* bulk_at(const FusedArguments& terms, unsigned rank, unsigned turn, unsigned shot,
                                          unsigned from, std::uint64_t stride) {
  return terms.landing[rank] + terms.layout.bulk(turn, shot) + from * stride;
}

}  // namespace waywiser::fused
