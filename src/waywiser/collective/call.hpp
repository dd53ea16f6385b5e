#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "waywiser/comm/message/call.hpp"

namespace waywiser {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  broadcast,
  all_gather,
  gather,
  scatter,
  all_to_all,
  barrier,
  neighbor_exchange,
  scan,
  exscan,
};
inline constexpr int collectives = 12;

std::string_view name(Collective operation) noexcept;
// The name under which ranks call it.
CallKind kind_of(Collective operation) noexcept;
// Throws invalid_input that lists the valid names.
Collective parse_collective(std::string_view text);

// One side of a neighbour exchange. Between two ranks, and from a rank to itself, messages match in ascending order of
// the sender's send_tag and the receiver's receive_tag.
struct Neighbor {
  int peer = 0;
  std::size_t send = 0, receive = 0;  // elements
  int send_tag = 0, receive_tag = 0;
};

// Where an array lies in a symmetric window: its slot, in bytes from the window's beginning. Slot 0: in none.
struct SymmetricPlace {
  unsigned slot = 0;
  std::uint64_t offset = 0;
};

// A collective operation at one rank, in elements. All ranks give equal values, except `rank` and the fields marked as
// own values.
struct CollectiveCall {
  Call as;  // what the ranks compare and errors name; an algorithm does not use it
  Collective operation = Collective::barrier;
  int rank = 0, ranks = 1, root = 0;
  // all_reduce, reduce, broadcast, scan, exscan: of the whole array. Others: of each rank's block, unless `counts` is
  // given.
  std::size_t count = 0;
  // The size of each rank's block. all_to_all: what this rank sends to each rank; own values, with receive_counts.
  std::vector<std::size_t> counts, receive_counts;
  std::vector<int> machine_of;      // of each rank; empty: all in one machine
  std::vector<Neighbor> neighbors;  // input and output hold their messages in order; own values
  // all_to_all, neighbor_exchange: input and output are the same buffer. Other operations do not use it; there the
  // shorter buffer may lie within the longer one, at the place of the rank's block.
  bool in_place = false;
  std::size_t chunk = 0;                             // elements of a piece in pipelined algorithms; 0: the default
  SymmetricPlace symmetric_input, symmetric_output;  // equal at all ranks if the program has kept its promise
};

// Throws invalid_input for a rank, root or peer that does not exist, or lists of a wrong length.
void check_call(const CollectiveCall& call);

}  // namespace waywiser
