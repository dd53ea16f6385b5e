#pragma once

#include <cstddef>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {

// In host memory: destination[i] = destination[i] op source[i]. avg adds; average() divides in the end. Integers wrap.
// Neither address need be aligned; the two must not overlap unless they are the same. Throws invalid_input for what
// has_reduction() says no to.
void reduce(DataType type, ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count);
// destination[i] /= ranks.
void average(DataType type, std::byte* destination, std::size_t count, int ranks);

}  // namespace waywiser
