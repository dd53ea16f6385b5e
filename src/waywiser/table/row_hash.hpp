#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/table/column_values.hpp"

namespace waywiser {

// Hashes of rows of a batch by their values in the columns `keys`, the same at all ranks. Rows whose keys are equal
// have equal hashes, whatever equal means: nulls are alike, as are all NaN, both zeros, a value and its dictionary's,
// and strings with offsets of 32 and of 64 bits.
class RowHashes {
 public:
  // The schema and the batch must outlive it. Throws unavailable for keys that are lists, structs or nulls.
  RowHashes(const TableSchema& schema, const ArrowArray& batch, std::span<const int> keys);

  // Of the rows from `first` on, which counts from the batch's first row.
  void write(std::int64_t first, std::span<std::uint64_t> hashes) const;

 private:
  struct Key {
    ColumnValues values;
    std::vector<std::uint64_t> meant;  // by the entries of its dictionary
  };

  std::vector<Key> keys_;
  std::int64_t offset_;
};

// The part, of `parts`, that a hash belongs to.
constexpr int part_of_hash(std::uint64_t hash, int parts) noexcept {
  return static_cast<int>(((hash >> 32) * static_cast<std::uint64_t>(parts)) >> 32);
}

}  // namespace waywiser
