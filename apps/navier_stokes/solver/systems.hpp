#pragma once

#include "apps/navier_stokes/solver/flow_mesh.hpp"

namespace flow {

// How an iteration has ended, from the best.
enum class SolverEnd : std::uint8_t {
  solved,
  stopped,  // by the number of iterations, or without progress
  broken,   // by numbers that are not finite
};

struct SolverResult {
  int iterations = 0;
  double residual = 0;  // relative to the norm of the right-hand side
  SolverEnd end = SolverEnd::solved;
};

// Whether it was solved, by the squares of the norms of its right-hand side and of its residual.
inline SolverEnd end_of(double right, double rest, double tolerance) {
  if (!std::isfinite(right) || !std::isfinite(rest)) return SolverEnd::broken;
  return right > 0 && !(std::sqrt(rest / right) <= tolerance) ? SolverEnd::stopped : SolverEnd::solved;
}

struct TwoSums {
  double first = 0, second = 0;

  APPS_CALLABLE friend TwoSums operator+(const TwoSums& a, const TwoSums& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

// volume * x + share * (minus the Laplacian's matrix) x, of three components.
struct MomentumRows {
  const double* volume;
  Matrix::View matrix;
  double share;

  APPS_CALLABLE double diagonal(std::int64_t i) const { return volume[i] + share * matrix.diagonal[i]; }
  APPS_CALLABLE Vector3 rest(std::int64_t i, const double* b, const double* x) const {
    return vector_at(b, i) - diagonal(i) * vector_at(x, i) + share * matrix.neighbor_vectors(i, x);
  }
};

}  // namespace flow
