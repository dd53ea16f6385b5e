#pragma once

#include <memory>
#include <vector>

#include "apps/navier_stokes/solver/replay.hpp"
#include "apps/navier_stokes/solver/systems.hpp"

namespace flow {

// The velocity at the end of a step, by Chebyshev iteration with the diagonal as preconditioner. Rows are so dominated
// by their diagonal that the eigenvalues are known to lie between 1 - spread and 1 + spread, where spread is the
// greatest share that the other entries have in a diagonal. So the number of steps is known in advance, none needs a
// sum over all ranks, and each is one exchange and one loop.
class MomentumSolver {
 public:
  // Collective.
  MomentumSolver(Exchanges& exchanges, const waywiser::HaloPartition& partition, const MomentumRows& rows);

  // Collective: another share of the matrix, for a step of another length.
  void set_share(double share);

  // Solves A x = b from the present x, whose ghosts are filled by exchange `ghosts`, until |b - A x| <= tolerance *
  // |b|, by two steps at least. The ghosts of x are stale afterwards. Norms are weighted by the inverse of the
  // diagonal: the square of a velocity times a volume. The plain norm of the residual would be that of the largest
  // cells, and leave the smallest ones, where the flow is, unsolved. The residual that is returned is that before the
  // last step.
  SolverResult solve(double* x, std::size_t ghosts, const double* b, double tolerance, int most);

 private:
  Exchanges& exchanges_;
  MomentumRows rows_;
  double spread_;
  apps::Array<double> other_;
  std::size_t other_ghosts_;
  std::vector<std::unique_ptr<Replay>> pairs_;  // of steps
};

}  // namespace flow
