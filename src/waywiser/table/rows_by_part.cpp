#include "waywiser/table/rows_by_part.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace waywiser {

void RowsByPart::take(const RowHashes& hashes, std::int64_t first, std::int64_t count) {
  const auto rows = static_cast<std::size_t>(count);
  const int parts = static_cast<int>(ends_.size());
  if (rows_.size() < rows) rows_.resize(rows), parts_.resize(rows);
  std::ranges::fill(ends_, 0);
  std::array<std::uint64_t, 1024> some;  // stays in a cache
  for (std::size_t begin = 0; begin < rows; begin += some.size()) {
    const std::size_t length = std::min(some.size(), rows - begin);
    hashes.write(first + static_cast<std::int64_t>(begin), std::span(some).first(length));
    for (std::size_t i = 0; i < length; ++i) {
      const int part = part_of_hash(some[i], parts);
      parts_[begin + i] = part;
      ++ends_[static_cast<std::size_t>(part)];
    }
  }
  std::int64_t begin = 0;
  for (std::int64_t& end : ends_) begin += std::exchange(end, begin);
  for (std::size_t row = 0; row < rows; ++row) {
    std::int64_t& end = ends_[static_cast<std::size_t>(parts_[row])];
    rows_[static_cast<std::size_t>(end++)] = first + static_cast<std::int64_t>(row);
  }
}

RowSet RowsByPart::of(int part) const {
  const auto at = static_cast<std::size_t>(part);
  const std::int64_t begin = part == 0 ? 0 : ends_[at - 1];
  return RowSet(std::span(rows_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends_[at] - begin)));
}

}  // namespace waywiser
