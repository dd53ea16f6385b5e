#pragma once

#include <cstddef>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {

// In host memory: destination[i] = destination[i] op source[i]. avg adds; end_reduction() divides. Integers wrap.
// The addresses need not be aligned; the arrays must not overlap unless they are equal. Throws invalid_input if
// has_reduction() is false.
void reduce(DataType type, ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count);
// destination[i] /= ranks.
void average(DataType type, std::byte* destination, std::size_t count, int ranks);
// The end of a reduction: avg divides by the number of ranks; land, lor and lxor give 1 or 0, also where nothing has
// been combined, as in a group of one rank and at the first rank of a scan.
inline void end_reduction(DataType type, ReduceOp op, std::byte* destination, std::size_t count, int ranks) {
  if (op == ReduceOp::avg) average(type, destination, count, ranks);
  if (op >= ReduceOp::land) reduce(type, ReduceOp::land, destination, destination, count);
}

}  // namespace waywiser
