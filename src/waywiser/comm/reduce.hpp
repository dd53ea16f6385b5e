#pragma once

#include <cstddef>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {

// In host memory: destination[i] = destination[i] op source[i]. avg adds; average() divides at the end. Integers wrap.
// The addresses need not be aligned; the arrays must not overlap unless they are equal. Throws invalid_input if
// has_reduction() is false.
void reduce(DataType type, ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count);
// destination[i] /= ranks.
void average(DataType type, std::byte* destination, std::size_t count, int ranks);

}  // namespace waywiser
