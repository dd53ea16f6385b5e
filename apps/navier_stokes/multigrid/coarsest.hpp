#pragma once

#include "apps/navier_stokes/solver/sparse_rows.hpp"

namespace flow {

// Solves the coarsest level directly, by its inverse: each rank for itself.
class CoarsestLevel {
 public:
  // If the matrix is singular, its null space are the constants, and solutions have the mean 0.
  CoarsestLevel(apps::Processor& processor, const SparseRows& rows, bool singular);

  void solve(const double* b, double* x);

 private:
  static constexpr std::int64_t parts = 32;  // of each row's product, which are summed apart

  apps::Processor& processor_;
  std::int64_t rows_;
  apps::Array<double> inverse_, sums_;
};

}  // namespace flow
