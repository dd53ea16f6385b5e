#pragma once

#include <array>

#include "apps/navier_stokes/multigrid/multigrid.hpp"
#include "apps/navier_stokes/solver/systems.hpp"

namespace flow {

// Conjugate gradients for the pressure, preconditioned by a multigrid cycle, in the order of Chronopoulos and Gear
// (1989): the product is that of the preconditioned residual, whose ghosts the cycle has filled, and those of
// directions are sums of it; so an iteration has two sums over all ranks instead of three.
class ConjugateGradient {
 public:
  ConjugateGradient(Exchanges& exchanges, Multigrid& multigrid, std::int64_t owned)
      : exchanges_(exchanges),
        multigrid_(multigrid),
        residual_(exchanges.processor(), owned),
        direction_(exchanges.processor(), owned),
        product_(exchanges.processor(), owned),
        direction_product_(exchanges.processor(), owned) {}

  // Solves A x = b from the present x, whose ghosts are filled, until |b - A x| <= tolerance * |b|, at least once. The
  // ghosts of x are stale afterwards. Directions are made orthogonal to the one before explicitly (Notay 2000), since
  // rounding makes the cycle a little unsymmetric.
  SolverResult solve(const Matrix::View& a, double* x, const double* b, double tolerance, int most) {
    apps::Processor& processor = exchanges_.processor();
    double *r = residual_.data(), *d = direction_.data(), *w = product_.data(), *q = direction_product_.data();
    const TwoSums begin = processor.sum(a.rows, [=] APPS_CALLABLE(std::int64_t i) {
      r[i] = b[i] - a.times(i, x);
      return TwoSums{b[i] * b[i], r[i] * r[i]};
    });
    auto [right, rest] = exchanges_.sum<2>({begin.first, begin.second});
    SolverResult result;
    double old = 0;
    // At least one iteration: near a steady state small changes would never be made.
    const auto unsolved = [&] { return rest > tolerance * tolerance * right || (result.iterations == 0 && rest > 0); };
    for (; unsolved() && result.iterations < most; ++result.iterations) {
      const double* z = multigrid_.apply(r);
      const bool first = result.iterations == 0;
      const ThreeSums mine = processor.sum(a.rows, [=] APPS_CALLABLE(std::int64_t i) {
        w[i] = a.times(i, z);
        return ThreeSums{z[i] * r[i], z[i] * w[i], first ? 0 : z[i] * q[i]};
      });
      const auto [along, bent, turned] = exchanges_.sum<3>({mine.x, mine.y, mine.z});
      const double share = first ? 0 : -turned / old;
      const double curvature = first ? bent : bent - turned * turned / old;  // of the new direction
      if (!std::isfinite(curvature)) rest = curvature;
      if (!(curvature > 0)) break;
      const double length = along / curvature;
      const double square = processor.sum(a.rows, [=] APPS_CALLABLE(std::int64_t i) {
        d[i] = first ? z[i] : z[i] + share * d[i];
        q[i] = first ? w[i] : w[i] + share * q[i];
        x[i] += length * d[i];
        r[i] -= length * q[i];
        return r[i] * r[i];
      });
      rest = exchanges_.sum<1>({square})[0];
      old = curvature;
    }
    result.residual = right > 0 ? std::sqrt(rest / right) : 0;
    result.end = end_of(right, rest, tolerance);
    return result;
  }

 private:
  using ThreeSums = Vector3;

  Exchanges& exchanges_;
  Multigrid& multigrid_;
  apps::Array<double> residual_, direction_, product_, direction_product_;
};

}  // namespace flow
