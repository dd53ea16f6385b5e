#include "apps/navier_stokes/solver/momentum_solver.hpp"

#include <algorithm>
#include <cmath>

namespace flow {
namespace {

// The bound of the eigenvalues holds but for rounding.
constexpr double rounding = 2;

// to = x + keep * (x - to) + take * (b - A x) / diagonal, from x; returns the squares of the norms of b and b - A x.
struct ChebyshevStep {
  MomentumRows rows;
  const double *b, *x;
  double* to;
  double keep, take;

  APPS_CALLABLE TwoSums operator()(std::int64_t i) const {
    const double diagonal = rows.diagonal(i);
    const Vector3 right = vector_at(b, i), own = vector_at(x, i), rest = rows.rest(i, b, x);
    const Vector3 moved = keep == 0 ? Vector3{} : keep * (own - vector_at(to, i));
    set_vector(to, i, own + moved + (take / diagonal) * rest);
    return {dot(right, right) / diagonal, dot(rest, rest) / diagonal};
  }
};

double greatest_share(Exchanges& exchanges, const MomentumRows& rows) {
  const double mine = exchanges.processor().max(rows.matrix.rows, [=] APPS_CALLABLE(std::int64_t i) {
    return rows.share * rows.matrix.weights(i) / rows.diagonal(i);
  });
  return std::max(exchanges.max(mine), 1e-3);
}

// An even number of Chebyshev steps, of which all but the last make a residual so many times smaller.
int steps_for(double smaller, double spread, int most) {
  const double steps = smaller > 1 ? std::ceil(std::acosh(smaller) / std::acosh(1 / spread)) : 0;
  return 2 * static_cast<int>(std::ceil(std::min(steps + 1, static_cast<double>(most)) / 2));
}

}  // namespace

MomentumSolver::MomentumSolver(Exchanges& exchanges, const waywiser::HaloPartition& partition, const MomentumRows& rows)
    : exchanges_(exchanges),
      rows_(rows),
      spread_(greatest_share(exchanges, rows)),
      other_(exchanges.processor(), 3 * static_cast<std::int64_t>(partition.cells)),
      other_ghosts_(exchanges.add(partition, other_, 3)) {}

void MomentumSolver::set_share(double share) {
  rows_.share = share;
  spread_ = greatest_share(exchanges_, rows_);
  pairs_.clear();  // they know the old one
}

SolverResult MomentumSolver::solve(double* x, std::size_t ghosts, const double* b, double tolerance, int most) {
  apps::Processor& processor = exchanges_.processor();
  const std::int64_t count = rows_.matrix.rows;
  double* other = other_.data();
  // The first step and the last one find the norms.
  const auto measured = [&](const ChebyshevStep& step) {
    const TwoSums mine = processor.sum(count, step);
    return exchanges_.sum<2>({mine.first, mine.second});
  };
  SolverResult result;
  const auto [right, rest] = measured({rows_, b, x, other, 0, 1});
  result.residual = right > 0 ? std::sqrt(rest / right) : 0;
  result.end = end_of(right, rest, tolerance);
  if (result.end == SolverEnd::broken || rest == 0) return result;

  result.iterations = steps_for(result.residual / tolerance, spread_, most);
  double old = spread_;
  const auto next = [&](const double* from, double* to) {
    const double present = 1 / (2 / spread_ - old);
    const ChebyshevStep step{rows_, b, from, to, present * old, 2 * present / spread_};
    old = present;
    return step;
  };
  for (std::size_t pair = 0; 2 * pair + 2 < static_cast<std::size_t>(result.iterations); ++pair) {
    if (pair == pairs_.size()) pairs_.push_back(std::make_unique<Replay>(exchanges_));
    const ChebyshevStep forth = next(other, x), back = next(x, other);
    pairs_[pair]->run({x, b}, [&] {
      exchanges_.fill(other_ghosts_);
      processor.for_each(count, forth);
      exchanges_.fill(ghosts);
      processor.for_each(count, back);
    });
  }
  exchanges_.fill(other_ghosts_);
  const auto [same, left] = measured(next(other, x));
  result.residual = same > 0 ? std::sqrt(left / same) : 0;
  result.end = end_of(same, left, rounding * tolerance);
  return result;
}

}  // namespace flow
