#pragma once

#include <utility>

#include "apps/navier_stokes/multigrid/aggregation.hpp"
#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

// Where the cells of each coarse cell begin in a list of all cells, and the list.
inline std::pair<std::vector<Index>, std::vector<Index>> members_of(const std::vector<Index>& coarse_of,
                                                                    std::int64_t coarse) {
  std::vector<Index> first(static_cast<std::size_t>(coarse) + 1, 0), list(coarse_of.size());
  for (const Index c : coarse_of) ++first[static_cast<std::size_t>(c) + 1];
  for (std::size_t c = 0; c + 1 < first.size(); ++c) first[c + 1] += first[c];
  std::vector<Index> next = first;
  for (std::size_t i = 0; i < coarse_of.size(); ++i)
    list[static_cast<std::size_t>(next[static_cast<std::size_t>(coarse_of[i])]++)] = static_cast<Index>(i);
  return {std::move(first), std::move(list)};
}

// One level of the multigrid on the processor of the rank.
struct MultigridLevel {
  MultigridLevel(Exchanges& exchanges, const LevelRows& level)
      : processor(exchanges.processor()),
        matrix(processor, level.rows),
        right(processor, level.rows.rows()),
        rest(processor, level.rows.rows()),
        change(processor, level.rows.rows()),
        solution(processor, level.cells),
        ghosts(exchanges.add(exchanges.partition_of(level.cells, level.neighbors), solution, 1)),
        first_member(processor, 0),
        members(processor, 0),
        coarse_of(processor, 0) {}

  void set_coarse(const std::vector<Index>& coarse, std::int64_t count) {
    const auto [first, list] = members_of(coarse, count);
    first_member = apps::Array<Index>(processor, static_cast<std::int64_t>(first.size()));
    members = apps::Array<Index>(processor, static_cast<std::int64_t>(list.size()));
    coarse_of = apps::Array<Index>(processor, static_cast<std::int64_t>(coarse.size()));
    first_member.assign(first);
    members.assign(list);
    coarse_of.assign(coarse);
  }

  // rest = right - A x.
  void compute_rest() {
    const Matrix::View a = matrix.view();
    const double *b = right.data(), *x = solution.data();
    double* r = rest.data();
    processor.for_each(a.rows,
                       [=] APPS_CALLABLE(std::int64_t i) { r[i] = b[i] - a.diagonal[i] * x[i] + a.neighbors(i, x); });
  }

  // One Chebyshev step: change = keep * change + take * r / diagonal; x = from * x + change.
  void step(const double* r, double keep, double take, double from) {
    const double* diagonal = matrix.view().diagonal;
    double *d = change.data(), *x = solution.data();
    processor.for_each(right.size(), [=] APPS_CALLABLE(std::int64_t i) {
      d[i] = keep * d[i] + take * r[i] / diagonal[i];
      x[i] = from * x[i] + d[i];
    });
  }

  // The right-hand side of the next level.
  void restrict_rest(MultigridLevel& coarse) {
    const double* r = rest.data();
    const Index *first = first_member.data(), *list = members.data();
    double* b = coarse.right.data();
    processor.for_each(coarse.right.size(), [=] APPS_CALLABLE(std::int64_t c) {
      double sum = 0;
      for (Index k = first[c]; k < first[c + 1]; ++k) sum += r[list[k]];
      b[c] = sum;
    });
  }
  void correct(const MultigridLevel& coarse, double factor) {
    const double* correction = coarse.solution.data();
    const Index* number = coarse_of.data();
    double* x = solution.data();
    processor.for_each(right.size(), [=] APPS_CALLABLE(std::int64_t i) { x[i] += factor * correction[number[i]]; });
  }

  // From the solution 0, or from the present one, whose ghosts may be stale; they are stale afterwards.
  void smooth(Exchanges& exchanges, bool from_zero) {
    constexpr double mid = (greatest_eigenvalue + least_eigenvalue) / 2;
    constexpr double half = (greatest_eigenvalue - least_eigenvalue) / 2;
    constexpr double first = half / mid, second = 1 / (2 * mid / half - first);
    if (from_zero) {
      step(right.data(), 0, 1 / mid, 0);
    } else {
      exchanges.fill(ghosts);
      compute_rest();
      step(rest.data(), 0, 1 / mid, 1);
    }
    exchanges.fill(ghosts);
    compute_rest();
    step(rest.data(), second * first, 2 * second / half, 1);
  }

  // Chebyshev polynomials of the matrix divided by its diagonal damp errors with eigenvalues between these; none is
  // above 2, since the weights of a row are together at most its diagonal.
  static constexpr double least_eigenvalue = 0.4, greatest_eigenvalue = 2;

  apps::Processor& processor;
  Matrix matrix;
  apps::Array<double> right, rest, change, solution;
  std::size_t ghosts;
  apps::Array<Index> first_member, members, coarse_of;
};

}  // namespace flow
