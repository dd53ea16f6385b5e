#pragma once

#include <optional>
#include <utility>

#include "apps/navier_stokes/multigrid/aggregation.hpp"
#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

// Where the cells of each coarse cell begin in a list of all cells, and the list.
inline std::pair<std::vector<Index>, std::vector<Index>> members_of(std::span<const Index> coarse_of,
                                                                    std::int64_t coarse) {
  std::vector<Index> first(at(coarse) + 1, 0), list(coarse_of.size());
  for (const Index c : coarse_of) ++first[at(c) + 1];
  for (std::size_t c = 0; c + 1 < first.size(); ++c) first[c + 1] += first[c];
  std::vector<Index> next = first;
  for (std::size_t i = 0; i < coarse_of.size(); ++i) list[at(next[at(coarse_of[i])]++)] = static_cast<Index>(i);
  return {std::move(first), std::move(list)};
}

// One level of the multigrid on the processor of the rank. Each Chebyshev step computes all cells from the other one of
// two arrays, so it is one loop.
class MultigridLevel {
 public:
  // `alone`: the level has no ghosts, because this rank has it whole.
  MultigridLevel(Exchanges& exchanges, const LevelRows& level, bool alone)
      : right(exchanges.processor(), level.rows.rows()),
        exchanges_(exchanges),
        processor_(exchanges.processor()),
        matrix_(processor_, level.rows),
        solution_(processor_, level.cells),
        other_(processor_, level.cells),
        first_member_(processor_, 0),
        members_(processor_, 0),
        coarse_of_(processor_, 0) {
    if (alone) return;
    const waywiser::HaloPartition partition = exchanges.partition_of(level.cells, level.neighbors);
    solution_ghosts_ = exchanges.add(partition, solution_, 1);
    other_ghosts_ = exchanges.add(partition, other_, 1);
  }

  // The coarse cell of each cell of this rank. If the coarse level has those of the ghosts too, so has the list. The
  // coarse cells of this rank's own cells are `count` from `first` on.
  void set_coarse(const std::vector<Index>& coarse_of, std::int64_t first, std::int64_t count) {
    std::vector<Index> own(coarse_of.begin(), coarse_of.begin() + right.size());
    for (Index& each : own) each -= static_cast<Index>(first);
    const auto [begins, list] = members_of(own, count);
    first_coarse_ = first;
    first_member_ = apps::Array<Index>(processor_, static_cast<std::int64_t>(begins.size()));
    members_ = apps::Array<Index>(processor_, static_cast<std::int64_t>(list.size()));
    coarse_of_ = apps::Array<Index>(processor_, static_cast<std::int64_t>(coarse_of.size()));
    first_member_.assign(begins);
    members_.assign(list);
    coarse_of_.assign(coarse_of);
  }

  // An approximate solution for `b`, from nothing; its ghosts are filled.
  void smooth_zero(const double* b) {
    const double* diagonal = matrix_.view().diagonal;
    double* x = other_.data();
    processor_.for_each(right.size(), [=] APPS_CALLABLE(std::int64_t i) { x[i] = b[i] / (middle * diagonal[i]); });
    fill(other_ghosts_);
    step(b, other_, solution_, 1 + keep, 0, take);  // the step before began from zero
    fill(solution_ghosts_);
  }
  // A better one; its ghosts are stale afterwards.
  void smooth(const double* b) {
    step(b, solution_, other_, 1, 0, 1 / middle);
    fill(other_ghosts_);
    step(b, other_, solution_, 1 + keep, -keep, take);
  }

  // The right-hand side of the next level, of this rank's coarse cells: sums of b - A x.
  void restrict_rest(const double* b, MultigridLevel& coarse) {
    const Matrix::View a = matrix_.view();
    const double* x = solution_.data();
    const Index *first = first_member_.data(), *list = members_.data();
    double* sums = coarse.right.data() + first_coarse_;
    processor_.for_each(first_member_.size() - 1, [=] APPS_CALLABLE(std::int64_t c) {
      double sum = 0;
      for (Index k = first[c]; k < first[c + 1]; ++k) {
        const Index i = list[k];
        sum += b[i] - a.diagonal[i] * x[i] + a.neighbors(i, x);
      }
      sums[c] = sum;
    });
  }
  // Afterwards the ghosts are filled.
  void correct(const MultigridLevel& coarse, double factor) {
    const double* correction = coarse.solution_.data();
    const Index* number = coarse_of_.data();
    double* x = solution_.data();
    processor_.for_each(coarse_of_.size(),
                        [=] APPS_CALLABLE(std::int64_t i) { x[i] += factor * correction[number[i]]; });
    if (coarse_of_.size() < solution_.size()) fill(solution_ghosts_);
  }

  // to = now * x + before * to + weight * (b - A x) / diagonal.
  void step(const double* b, const apps::Array<double>& from, apps::Array<double>& to, double now, double before,
            double weight) {
    const Matrix::View a = matrix_.view();
    const double* x = from.data();
    double* result = to.data();
    processor_.for_each(a.rows, [=] APPS_CALLABLE(std::int64_t i) {
      const double old = before == 0 ? 0 : before * result[i];
      result[i] = now * x[i] + old + weight * ((b[i] + a.neighbors(i, x)) / a.diagonal[i] - x[i]);
    });
  }

  void fill_solution() { fill(solution_ghosts_); }
  double* solution() { return solution_.data(); }

  apps::Array<double> right;  // of the cells that this rank computes

 private:
  void fill(const std::optional<std::size_t>& ghosts) {
    if (ghosts) exchanges_.fill(*ghosts);
  }

  // Chebyshev polynomials of the matrix divided by its diagonal damp errors with eigenvalues between these; none is
  // above 2, since the weights of a row are together at most its diagonal.
  static constexpr double least_eigenvalue = 0.4, greatest_eigenvalue = 2;
  static constexpr double middle = (greatest_eigenvalue + least_eigenvalue) / 2;
  static constexpr double half = (greatest_eigenvalue - least_eigenvalue) / 2;
  // Of the second step: x + keep * (x - the one before) + take * (b - A x) / diagonal.
  static constexpr double second = 1 / (2 * middle / half - half / middle);
  static constexpr double keep = second * half / middle, take = 2 * second / half;

  Exchanges& exchanges_;
  apps::Processor& processor_;
  Matrix matrix_;
  apps::Array<double> solution_, other_;
  std::optional<std::size_t> solution_ghosts_, other_ghosts_;
  std::int64_t first_coarse_ = 0;
  apps::Array<Index> first_member_, members_, coarse_of_;
};

}  // namespace flow
