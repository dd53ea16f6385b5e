#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/row_set.hpp"
#include "waywiser/table/tile_sort.hpp"

namespace waywiser {

// Some rows of a batch by the parts that their hashes belong to, each part's in their order. They lie in tiles, runs of
// so few rows that they stay in a cache, and are sorted within each.
class RowsByPart {
 public:
  using Row = std::uint16_t;  // from the first one of its tile on

  explicit RowsByPart(int parts);

  void take(const RowHashes& hashes, std::int64_t first, std::int64_t count);

  // What follows holds until the next take().
  int parts() const noexcept { return static_cast<int>(counts_.size()); }
  std::int64_t count(int part) const { return counts_[static_cast<std::size_t>(part)]; }
  std::size_t tiles() const noexcept { return tiles_; }
  std::int64_t first_of(std::size_t tile) const noexcept {
    return first_ + static_cast<std::int64_t>(tile * tile_rows_);
  }
  std::span<const Row> in_tile(std::size_t tile, int part) const;
  // The same over all tiles; until the next call.
  RowSet of(int part);

 private:
  std::size_t tile_rows_, tiles_ = 0;
  std::int64_t first_ = 0;
  std::vector<std::int64_t> counts_, list_;
  std::vector<Row> rows_;
  std::vector<std::uint32_t> ends_;  // of the parts in a tile, tile by tile
  TileSort sort_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace waywiser
