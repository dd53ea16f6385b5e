#pragma once

#include <array>
#include <functional>

#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

struct SolverResult {
  int iterations = 0;
  double residual = 0;  // relative to the norm of the right-hand side
};

// Computes the owned part of the second vector from the first.
using Operation = std::function<void(const double*, double*)>;

struct TwoSums {
  double first = 0, second = 0;

  APPS_CALLABLE friend TwoSums operator+(const TwoSums& a, const TwoSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// The vectors of a solver, with ghosts only where a product needs them.
class ConjugateGradient {
 public:
  ConjugateGradient(Exchanges& exchanges, const waywiser::HaloPartition& partition, std::int64_t owned, int components)
      : exchanges_(exchanges),
        count_(owned * components),
        residual_(exchanges.processor(), count_),
        preconditioned_(exchanges.processor(), count_),
        product_(exchanges.processor(), count_),
        direction_(exchanges.processor(), static_cast<std::int64_t>(partition.cells) * components),
        ghosts_(exchanges.add(partition, direction_, static_cast<std::size_t>(components))) {}

  // Solves A x = b from the present x, whose ghosts are filled, until |b - A x| <= tolerance * |b|, at least once.
  // `apply(in, out)` computes A in, `precondition(r, z)` an approximation of the inverse of A times r, which may differ
  // from call to call (the flexible variant: Notay 2000). The ghosts of x are stale afterwards.
  // `square` is the square of the norm, of this rank's part; cells of different sizes need one that does them all
  // justice.
  SolverResult solve(double* x, const double* b, double tolerance, int most, const Operation& apply,
                     const Operation& precondition, const std::function<double(const double*)>& square) {
    apps::Processor& processor = exchanges_.processor();
    double *r = residual_.data(), *z = preconditioned_.data(), *q = product_.data(), *d = direction_.data();
    const std::int64_t n = count_;
    apply(x, q);
    processor.for_each(n, [=] APPS_CALLABLE(std::int64_t i) { r[i] = b[i] - q[i]; });
    auto [right, rest] = exchanges_.sum<2>({square(b), square(r)});
    SolverResult result;
    double old = 0, step = 0;
    // At least one iteration: near a steady state small changes would never be made.
    const auto unsolved = [&] { return rest > tolerance * tolerance * right || (result.iterations == 0 && rest > 0); };
    for (; unsolved() && result.iterations < most; ++result.iterations) {
      precondition(r, z);
      const auto [along, turned] = exchanges_.sum<2>(dots(z, r, q));
      const double share = result.iterations == 0 ? 0 : -step * turned / old;
      processor.for_each(n, [=] APPS_CALLABLE(std::int64_t i) { d[i] = z[i] + share * d[i]; });
      exchanges_.fill(ghosts_);
      apply(d, q);
      const auto [curvature, slope] = exchanges_.sum<2>(dots(d, q, r));
      if (!(curvature > 0)) break;
      step = slope / curvature;
      old = along;
      const double length = step;
      processor.for_each(n, [=] APPS_CALLABLE(std::int64_t i) {
        x[i] += length * d[i];
        r[i] -= length * q[i];
      });
      rest = exchanges_.sum<1>({square(r)})[0];
    }
    result.residual = right > 0 ? std::sqrt(rest / right) : 0;
    return result;
  }

  // a b and a c
  std::array<double, 2> dots(const double* a, const double* b, const double* c) {
    const TwoSums sums = exchanges_.processor().sum(
        count_, [=] APPS_CALLABLE(std::int64_t i) { return TwoSums{a[i] * b[i], a[i] * c[i]}; });
    return {sums.first, sums.second};
  }
  double dot(const double* a, const double* b) {
    return exchanges_.processor().sum(count_, [=] APPS_CALLABLE(std::int64_t i) { return a[i] * b[i]; });
  }

 private:
  Exchanges& exchanges_;
  std::int64_t count_;
  apps::Array<double> residual_, preconditioned_, product_, direction_;
  std::size_t ghosts_;
};

}  // namespace flow
