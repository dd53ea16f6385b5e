#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

struct ProxyRing;

// Which threads make a call together: one, all of its warp, or all of its block.
enum class Scope { thread, warp, block };

// How a wait compares the word in memory with its value.
enum class Comparison : std::uint32_t { eq, ne, gt, ge, lt, le };

// What a signal does to the word of the other rank.
enum class SignalOp : std::uint32_t { set, add };

// How a team combines elements; bits are those of whole numbers.
enum class TeamOp { sum, product, minimum, maximum, bit_and, bit_or, bit_xor };

// Whether kernels know the proxy. A program whose GPUs all reach each other is compiled without, all files alike: its
// kernels are smaller, and one that accesses a rank that stores do not reach stops.
#if defined(WAYWISER_NO_PROXY)
inline constexpr bool with_proxy = false;
#else
inline constexpr bool with_proxy = true;
#endif

// The most ranks of a heap.
inline constexpr unsigned most_ranks = 64;

// Of a rank: no rank is named; of an address: other memory, which the host has opened.
inline constexpr int any_rank = -1, opened = -1;

// How put_message() carries a message: data and flag in one store (LL, LL128), or stores and then a signal.
enum class Protocol : std::uint32_t { packets, lines, stores };

// Up to how many bytes a message goes by each; from how many on a block's put goes by bulk asynchronous copies.
struct Protocols {
  std::uint64_t packets = 0, lines = 0, bulk = ~std::uint64_t{0};

  bool operator==(const Protocols&) const = default;
};

// Where messages of one sender and of at most so many bytes arrive: an offset in the heap.
struct Inbox {
  std::uint64_t offset = 0, most = 0;
};

// A bulk copy has so many pieces under way, each in a stage of the memory between; the stages' barriers come first.
inline constexpr unsigned bulk_stages = 4, bulk_barriers = 128, least_staging = bulk_barriers + bulk_stages * 128;

WAYWISER_DEVICE constexpr unsigned bulk_piece_of(unsigned staging) {
  return staging < least_staging ? 0 : (staging - bulk_barriers) / bulk_stages / 128 * 128;
}

// Why a kernel has stopped.
enum class FaultReason : std::uint32_t {
  none,
  late,
  outside,
  not_reached,
  no_rank,
  proxy_late,
  stopped,
  too_long,
  overlap
};

// In host memory: what a kernel tells the host before it stops, `failed` as the last; and what the host tells kernels.
struct alignas(64) FaultNotice {
  std::uint64_t failed = 0;  // the reason, and above it 1 + the rank (0: none is named)
  std::uint64_t offset = 0;  // of the word in the heap
  std::uint64_t bytes = 0;   // of the access
  std::uint64_t wanted = 0, seen = 0;
  std::uint32_t comparison = 0;
  alignas(64) std::uint64_t stopped = 0;  // 1: the group has failed, no wait goes on
};
// Reads of one word of host memory by many threads of a GPU come one after another: a wait looks there so seldom.
inline constexpr unsigned looks_at_host = 64;

// The counters of one team in the memory of one rank.
struct alignas(64) TeamCounters {
  std::uint64_t arrived[most_ranks];  // by member: the number of its last arrival
  std::uint64_t arrivals;             // of this rank
};

// A heap has so many teams at a time. Behind the counters of all of them each has packets of so many bytes, in which a
// broadcast of as many or fewer arrives.
inline constexpr unsigned most_teams = 64;
inline constexpr std::uint64_t team_packet_bytes = 4096;

// Where they begin, from the first counters on.
WAYWISER_DEVICE constexpr std::uint64_t team_packets_at(std::uint64_t slot) {
  return most_teams * sizeof(TeamCounters) + slot * 2 * team_packet_bytes;
}

// A heap, as kernels of one GPU or threads of one host use it: Heap::terms.
struct HeapTerms {
  std::byte* ranks[most_ranks] = {};  // the memory of each rank as it is reached from here; nullptr: it is not
  std::uint64_t bytes = 0;            // of the program, at each rank
  std::uint64_t counters = 0;         // the offset of the counters of teams, behind the program's bytes
  FaultNotice* notice = nullptr;
  std::uint64_t deadline_ns = 0;  // of each wait
  int rank = 0, size = 0;
  std::byte* own = nullptr;          // ranks[rank], for which kernels need not look
  ProxyRing* ring = nullptr;         // nullptr: all ranks are reached
  std::uint64_t* tickets = nullptr;  // the next one of the ring
  Protocols protocols;               // the same at all ranks
};

// A team, as kernels use it: HeapTeam::terms.
struct TeamTerms {
  int members[most_ranks] = {};  // ranks of the heap
  int rank = 0, size = 0;        // within the team
  std::uint32_t slot = 0;        // its counters
};

template <typename T>
WAYWISER_DEVICE constexpr bool compares(T seen, Comparison how, T value) {
  switch (how) {
    case Comparison::eq: return seen == value;
    case Comparison::ne: return seen != value;
    case Comparison::gt: return seen > value;
    case Comparison::ge: return seen >= value;
    case Comparison::lt: return seen < value;
    case Comparison::le: break;
  }
  return seen <= value;
}

}  // namespace waywiser::one_sided
