#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace waywiser {

// Rows of a column in their order: a run, or any.
class RowSet {
 public:
  RowSet(std::int64_t first, std::int64_t count) : first_(first), count_(count) {}
  explicit RowSet(std::vector<std::int64_t> rows)
      : count_(static_cast<std::int64_t>(rows.size())), rows_(std::move(rows)) {}

  std::int64_t size() const noexcept { return count_; }
  bool is_run() const noexcept { return rows_.empty(); }
  std::int64_t operator[](std::int64_t i) const noexcept {
    return is_run() ? first_ + i : rows_[static_cast<std::size_t>(i)];
  }
  // Those from place `first` on.
  RowSet part(std::int64_t first, std::int64_t count) const {
    if (is_run()) return {first_ + first, count};
    return RowSet(std::vector<std::int64_t>(rows_.begin() + first, rows_.begin() + first + count));
  }
  // The same rows where each is `by` further on.
  RowSet moved(std::int64_t by) const {
    RowSet other = *this;
    other.first_ += by;
    for (std::int64_t& row : other.rows_) row += by;
    return other;
  }

 private:
  std::int64_t first_ = 0, count_ = 0;
  std::vector<std::int64_t> rows_;
};

}  // namespace waywiser
