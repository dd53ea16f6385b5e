#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/table/pack.hpp"
#include "waywiser/table/rows_by_part.hpp"

namespace waywiser {

// Rows of a batch that are sorted by part, on the way into a block for each part, laid out as `Packing` does it: tile
// by tile, so that the batch is read once, and what is read stays in a cache until all blocks have it.
class PackingByPart {
 public:
  // Whether all columns are of numbers, booleans, texts or binaries, and none has a dictionary.
  static bool serves(const TableSchema& schema);

  // Of a schema that it serves; all outlive it, and `rows` stays as it is.
  PackingByPart(const TableSchema& schema, const ArrowArray& batch, const RowsByPart& rows);

  Bytes bytes(int part) const { return parts_[static_cast<std::size_t>(part)].bytes; }
  const std::vector<PackedNode>& nodes(int part) const { return parts_[static_cast<std::size_t>(part)].nodes; }
  // `blocks`, by part: of bytes(part), at multiples of 64, or nullptr for what is left out. Their hashes.
  std::vector<std::uint64_t> write(std::span<std::byte* const> blocks) const;

 private:
  struct Part {
    Bytes bytes = 0;
    std::vector<PackedNode> nodes;
  };
  void count(const ColumnValues& values);

  const RowsByPart& rows_;
  std::int64_t offset_;  // of the batch
  std::vector<ColumnValues> columns_;
  std::vector<Part> parts_;
};

}  // namespace waywiser
