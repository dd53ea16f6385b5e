#pragma once

#include <span>

#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// A part of one array, or nothing.
struct ArrayPart {
  DataType type = DataType::uint8;
  std::size_t array_count = 0;  // elements of the array
  std::size_t offset = 0, count = 0;
  BlockLayout layout = {};  // of parts whose elements lie apart: its runs hold `count` elements
  bool apart = false;
};

// What one rank gives to another and takes from it. Between two ranks, what is given is matched in ascending order of
// the giver's give_tag and of the taker's take_tag.
struct ArrayExchange {
  int peer = 0;
  ArrayPart give, take;
  int give_tag = 0, take_tag = 0;
};

namespace collective::neighbor_exchange {

// All at once, in one round. The schedule's arrays are what the first one gives and takes, then those of the second,
// and so on. Throws invalid_input: a rank that does not exist, or not as much given to this rank itself as taken.
Schedule of_arrays(int rank, int ranks, std::span<const ArrayExchange> neighbors);

}  // namespace collective::neighbor_exchange
}  // namespace waywiser
