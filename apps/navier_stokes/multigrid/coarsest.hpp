#pragma once

#include "apps/navier_stokes/multigrid/aggregation.hpp"
#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

// Solves the coarsest level directly: each rank has its rows of the inverse, and the whole right-hand side, whose other
// parts are its ghosts.
class CoarsestLevel {
 public:
  // Collective. If the matrix is singular, its null space are the constants, and solutions have the mean 0.
  CoarsestLevel(Exchanges& exchanges, const LevelRows& level, bool singular);

  void solve(const apps::Array<double>& right, double* x);

 private:
  static constexpr std::int64_t parts = 32;  // of each row's product, which are summed apart

  Exchanges& exchanges_;
  std::vector<std::size_t> counts_;             // rows of each rank
  std::int64_t first_;                          // row of this rank
  apps::Array<double> right_, inverse_, sums_;  // the rows of the inverse lie column by column
  std::size_t others_;
};

}  // namespace flow
