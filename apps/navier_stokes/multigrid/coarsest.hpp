#pragma once

#include "apps/navier_stokes/multigrid/aggregation.hpp"
#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

// Solves the coarsest level directly: each rank has its rows of the inverse, and all gather the right-hand side.
class CoarsestLevel {
 public:
  // Collective. If the matrix is singular, its null space are the constants, and solutions have the mean 0.
  CoarsestLevel(Exchanges& exchanges, const LevelRows& level, bool singular);

  void solve(apps::Array<double>& right, double* x);

 private:
  Exchanges& exchanges_;
  std::vector<std::size_t> counts_;  // rows of each rank
  apps::Array<double> inverse_, right_;
};

}  // namespace flow
