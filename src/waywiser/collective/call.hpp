#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

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
};
inline constexpr int collectives = 10;

std::string_view name(Collective operation) noexcept;
// Throws invalid_input with the names that there are.
Collective parse_collective(std::string_view text);

// One side of a neighbour exchange. Between two ranks, and from a rank to itself, messages are matched in ascending
// order of the sender's send_tag and of the receiver's receive_tag.
struct Neighbor {
  int peer = 0;
  std::size_t send = 0, receive = 0;  // elements
  int send_tag = 0, receive_tag = 0;
};

// What is asked of one rank, in elements. Every rank gives the same values, but for `rank` and what says otherwise.
struct CollectiveCall {
  Collective operation = Collective::barrier;
  int rank = 0, ranks = 1, root = 0;
  // all_reduce, reduce, broadcast: of the whole. The others: of the block of each rank, unless `counts` is given.
  std::size_t count = 0;
  // Of the block of each rank. all_to_all: what this rank sends to each, its own values, with receive_counts.
  std::vector<std::size_t> counts, receive_counts;
  std::vector<int> machine_of;      // of each rank; empty: all in one machine
  std::vector<Neighbor> neighbors;  // input and output hold their messages one after the other; own values
  // all_to_all, neighbor_exchange: input and output are the same buffer. The other operations need not be told; there
  // the shorter of the two buffers is the place in the longer one that the rank's block has.
  bool in_place = false;
  std::size_t chunk = 0;  // elements of a piece of pipelined algorithms; 0: the default
};

// Throws invalid_input: a rank, root or peer that does not exist, or lists of a wrong length.
void check_call(const CollectiveCall& call);

}  // namespace waywiser
