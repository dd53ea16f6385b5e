#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace waywiser {

// Rows of a column in their order: a run, or any. Copies share the list.
class RowSet {
 public:
  RowSet(std::int64_t first, std::int64_t count) : first_(first), count_(count) {}
  explicit RowSet(std::vector<std::int64_t> rows)
      : count_(static_cast<std::int64_t>(rows.size())),
        owner_(std::make_shared<const std::vector<std::int64_t>>(std::move(rows))),
        list_(owner_->data()) {}

  // Of a list that outlives it.
  explicit RowSet(std::span<const std::int64_t> rows)
      : count_(static_cast<std::int64_t>(rows.size())), list_(rows.data()) {}

  std::int64_t size() const noexcept { return count_; }
  bool is_run() const noexcept { return list_ == nullptr; }
  std::int64_t operator[](std::int64_t i) const noexcept { return is_run() ? first_ + i : list_[i]; }
  // nullptr: a run.
  const std::int64_t* list() const noexcept { return list_; }
  // Those from place `first` on.
  RowSet part(std::int64_t first, std::int64_t count) const {
    RowSet other = *this;
    other.count_ = count;
    if (is_run())
      other.first_ += first;
    else
      other.list_ += first;
    return other;
  }
  // The same rows where each is `by` further on.
  RowSet moved(std::int64_t by) const {
    if (is_run()) return {first_ + by, count_};
    std::vector<std::int64_t> rows(list_, list_ + count_);
    for (std::int64_t& row : rows) row += by;
    return RowSet(std::move(rows));
  }

 private:
  std::int64_t first_ = 0, count_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> owner_;
  const std::int64_t* list_ = nullptr;
};

}  // namespace waywiser
