#include "waywiser/table/rows_by_part.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr std::size_t usual_tile = 4096, longest_tile = std::size_t{1} << 16, least_of_part = 16;  // rows

}  // namespace

RowsByPart::RowsByPart(int parts)
    : tile_rows_(std::clamp(least_of_part * static_cast<std::size_t>(parts), usual_tile, longest_tile)),
      counts_(static_cast<std::size_t>(parts)),
      sort_(parts) {}

void RowsByPart::take(const RowHashes& hashes, std::int64_t first, std::int64_t count) {
  const auto rows = static_cast<std::size_t>(count), parts = counts_.size();
  first_ = first;
  tiles_ = (rows + tile_rows_ - 1) / tile_rows_;
  if (rows_.size() < rows + TileSort::spare) rows_.resize(rows + TileSort::spare);
  if (ends_.size() < tiles_ * parts) ends_.resize(tiles_ * parts);
  if (hashes_.size() < std::min(rows, tile_rows_)) hashes_.resize(std::min(rows, tile_rows_));
  std::ranges::fill(counts_, 0);
  for (std::size_t tile = 0; tile < tiles_; ++tile) {
    const std::size_t begin = tile * tile_rows_;
    const auto some = std::span(hashes_).first(std::min(tile_rows_, rows - begin));
    hashes.write(first_of(tile), some);
    const auto ends = std::span(ends_).subspan(tile * parts, parts);
    sort_(some, rows_.data() + begin, ends);
    for (std::size_t part = 0; part < parts; ++part) counts_[part] += ends[part] - (part == 0 ? 0 : ends[part - 1]);
  }
}

std::span<const RowsByPart::Row> RowsByPart::in_tile(std::size_t tile, int part) const {
  const std::uint32_t* const ends = ends_.data() + tile * counts_.size();
  const std::size_t begin = part == 0 ? 0 : ends[part - 1];
  return std::span(rows_).subspan(tile * tile_rows_ + begin, ends[part] - begin);
}

RowSet RowsByPart::of(int part) {
  list_.clear();
  for (std::size_t tile = 0; tile < tiles_; ++tile)
    for (const Row row : in_tile(tile, part)) list_.push_back(first_of(tile) + row);
  return RowSet(std::span<const std::int64_t>(list_));
}

}  // namespace waywiser
