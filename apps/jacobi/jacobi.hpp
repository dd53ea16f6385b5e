#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>
#include <waywiser/halo/grid.hpp>

#include "apps/exchange.hpp"
#include "apps/fused.hpp"
#include "apps/grid.hpp"
#include "apps/parallel.hpp"

namespace apps {

// One cell's new value: the mean of its four neighbours.
template <typename T>
struct Relax {
  static constexpr int rows_at_once = 4, blocks_at_once = 4;
  const T* from;  // at the first of the cells that are computed
  T* to;
  std::int64_t width;

  APPS_CALLABLE void operator()(std::int64_t row, std::int64_t column) const { steady(row * width + column); }
  APPS_CALLABLE void steady(std::int64_t i) const {
    const T* at = from + i;
    to[i] = static_cast<T>(0.25) * ((read(at - width) + read(at + width)) + (read(at - 1) + read(at + 1)));
  }
  // The same where others write into the ghosts meanwhile.
  APPS_CALLABLE void operator()(std::int64_t i) const {
    const T* at = from + i;
    to[i] = static_cast<T>(0.25) * ((at[-width] + at[width]) + (at[-1] + at[1]));
  }
};

// Two waves on the grid, which an iteration multiplies by known factors: the exact result after any number of them.
// Rows are periodic; beyond the first and the last column the values are zero.
class Waves {
 public:
  // The shorter wave falls to about a third within `steps`, so that a single wrong ghost shows.
  Waves(std::int64_t rows, std::int64_t columns, std::int64_t steps) {
    const auto shorter_waves = [steps](std::int64_t cells, double length, std::int64_t most) {
      const double shorter = static_cast<double>(cells) / length * std::sqrt(2.0 / static_cast<double>(steps));
      return std::max<std::int64_t>(1, std::min<std::int64_t>(most, std::llround(shorter)));
    };
    using std::numbers::pi;
    row_angle_[0] = 2 * pi / static_cast<double>(rows);
    row_angle_[1] =
        row_angle_[0] * static_cast<double>(shorter_waves(rows, 2 * pi, std::max<std::int64_t>(1, rows / 4)));
    column_angle_[0] = pi / static_cast<double>(columns + 1);
    column_angle_[1] =
        column_angle_[0] * static_cast<double>(shorter_waves(columns, pi, std::max<std::int64_t>(1, columns / 2)));
  }

  static constexpr int count = 2;
  // What wave `which` has in a row, and in a column; the product is its value before the first iteration.
  double in_row(int which, std::int64_t row) const {
    return (which == 0 ? 1 : 0.5) * std::sin(row_angle_[which] * static_cast<double>(row) + 0.3);
  }
  double in_column(int which, std::int64_t column) const {
    return std::sin(column_angle_[which] * static_cast<double>(column + 1));
  }
  double factor(int which) const { return (std::cos(row_angle_[which]) + std::cos(column_angle_[which])) / 2; }

 private:
  double row_angle_[count], column_angle_[count];
};

// The exact values in a box.
struct ExactWaves {
  const double* tables;  // of each wave the rows, then the columns
  std::int64_t rows, columns;
  double factors[Waves::count];

  APPS_CALLABLE double operator()(std::int64_t row, std::int64_t column) const {
    double value = 0;
    for (int which = 0; which < Waves::count; ++which) {
      const double* table = tables + which * (rows + columns);
      value += factors[which] * table[row] * table[rows + column];
    }
    return value;
  }
};

// Jacobi iterations for Laplace's equation on this rank's box of a grid.
template <typename T>
class Jacobi {
 public:
  // Collective.
  Jacobi(waywiser::Group& group, waywiser::HaloGrid grid, int threads, std::int64_t steps_of_a_run)
      : group_(group),
        processor_(group, threads),
        grid_(std::move(grid)),
        box_(grid_.boxes[static_cast<std::size_t>(group.rank())]),
        rows_(box_.count[0]),
        columns_(box_.count[1]),
        width_(columns_ + 2),
        parts_(parts_for<Processor>(box_.count)),
        waves_(grid_.shape[0], grid_.shape[1], steps_of_a_run),
        arrays_{{processor_, (rows_ + 2) * width_}, {processor_, (rows_ + 2) * width_}},
        exchanges_{{group, processor_, face_partition(grid_, group.rank()), {arrays_[0].field()}},
                   {group, processor_, face_partition(grid_, group.rank()), {arrays_[1].field()}}},
        tables_(processor_, Waves::count * (rows_ + columns_)) {
    std::vector<double> tables;
    for (int which = 0; which < Waves::count; ++which) {
      for (std::int64_t row = 0; row < rows_; ++row) tables.push_back(waves_.in_row(which, box_.first[0] + row));
      for (std::int64_t column = 0; column < columns_; ++column)
        tables.push_back(waves_.in_column(which, box_.first[1] + column));
    }
    tables_.assign(tables);
  }

  const waywiser::HaloGrid& grid() const noexcept { return grid_; }
  const waywiser::GridBox& box() const noexcept { return box_; }

  // Collective, as Exchange has it.
  void use(const Way& way) {
    is_fused_ = way.is_fused();
    if (is_fused_ && !fused_) fused_.emplace(group_, processor_, grid_);
    if (is_fused_) return fused_->use(way);
    for (Exchange& each : exchanges_) each.use(way);
  }
  waywiser::HaloVariant variant() const noexcept { return exchanges_[0].variant(); }

  // To the beginning: the waves as they are before the first iteration.
  void reset() {
    done_ = 0;
    const ExactWaves exact = exact_values();
    for (int which = 0; which < 2; ++which) {
      T* to = array(which);
      const std::int64_t width = width_;
      processor_.for_each((rows_ + 2) * width_, [=] APPS_CALLABLE(std::int64_t i) { to[i] = 0; });
      processor_.for_each(rows_, columns_, [=] APPS_CALLABLE(std::int64_t row, std::int64_t column) {
        to[(row + 1) * width + column + 1] = static_cast<T>(exact(row, column));
      });
    }
    processor_.wait();
  }
  // Where a processor overlaps, the cells inside are computed while the ghosts travel.
  void steps(std::int64_t count) {
    if (is_fused_) return fused_steps(count);
    for (std::int64_t end = done_ + count; done_ < end; ++done_) {
      Exchange& exchange = exchanges_[done_ % 2];
      exchange.start();
      relax(parts_.inner);
      exchange.finish();
      for (const CellBox& part : parts_.outer) relax(part);
    }
    processor_.wait();
  }
  // The largest difference from the exact result; what rounding explains.
  double error() {
    const ExactWaves exact = exact_values();
    const T* found = array(done_ % 2);
    const std::int64_t width = width_, columns = columns_;
    return processor_.max(rows_ * columns_, [=] APPS_CALLABLE(std::int64_t i) {
      const std::int64_t row = i / columns, column = i % columns;
      const double difference = static_cast<double>(found[(row + 1) * width + column + 1]) - exact(row, column);
      return difference == difference ? (difference < 0 ? -difference : difference) : 1e300;  // NaN is wrong
    });
  }
  static double tolerance(std::int64_t steps) {
    return 2 * static_cast<double>(std::numeric_limits<T>::epsilon()) * static_cast<double>(steps + 2);
  }

  // The cells of this rank, without ghosts.
  std::vector<T> values() {
    if (is_fused_) {
      const T* from = array(done_ % 2);
      T* to = arrays_[done_ % 2].data();
      processor_.for_each((rows_ + 2) * width_, [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
    }
    const std::vector<T> all = arrays_[done_ % 2].values();
    std::vector<T> own;
    for (std::int64_t row = 1; row <= rows_; ++row)
      own.insert(own.end(), all.begin() + row * width_ + 1, all.begin() + row * width_ + 1 + columns_);
    return own;
  }

 private:
  T* array(std::int64_t which) { return is_fused_ ? fused_->array(static_cast<int>(which)) : arrays_[which].data(); }
  // All of a step in one kernel.
  void fused_steps(std::int64_t count) {
    if (done_ == 0) fused_->begin();
    for (std::int64_t end = done_ + count; done_ < end; ++done_)
      fused_->step(static_cast<int>(1 - done_ % 2), Relax<T>{array(done_ % 2), array(1 - done_ % 2), width_});
    fused_->wait();
  }
  ExactWaves exact_values() {
    const auto steps = static_cast<double>(done_);
    return {tables_.data(), rows_, columns_, {std::pow(waves_.factor(0), steps), std::pow(waves_.factor(1), steps)}};
  }
  void relax(const CellBox& part) {
    const std::int64_t first = (part.first[0] + 1) * width_ + part.first[1] + 1;
    processor_.for_each(part.count[0], part.count[1],
                        Relax<T>{arrays_[done_ % 2].data() + first, arrays_[1 - done_ % 2].data() + first, width_});
  }

  waywiser::Group& group_;
  Processor processor_;
  waywiser::HaloGrid grid_;
  waywiser::GridBox box_;
  std::int64_t rows_, columns_, width_;
  CellParts parts_;
  Waves waves_;
  Array<T> arrays_[2];  // iteration n reads arrays_[n % 2]
  Exchange exchanges_[2];
  Array<double> tables_;
  std::optional<FusedField<T, 2>> fused_;  // once it is in use
  bool is_fused_ = false;
  std::int64_t done_ = 0;
};

}  // namespace apps
