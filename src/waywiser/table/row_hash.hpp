#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/table/batch.hpp"

namespace waywiser {

// A hash of each row's values in the columns `keys`, the same at all ranks. Rows whose keys are equal have equal
// hashes, whatever equal means: nulls are alike, as are all NaN, both zeros, a value and its dictionary's, and strings
// with offsets of 32 and of 64 bits. Throws unavailable for keys that are lists, structs or nulls.
std::vector<std::uint64_t> hash_rows(const TableSchema& schema, const ArrowArray& batch, std::span<const int> keys);

// The part, of `parts`, that a hash belongs to.
constexpr int part_of_hash(std::uint64_t hash, int parts) noexcept {
  return static_cast<int>(((hash >> 32) * static_cast<std::uint64_t>(parts)) >> 32);
}

}  // namespace waywiser
