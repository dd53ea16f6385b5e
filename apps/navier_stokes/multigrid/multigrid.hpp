#pragma once

#include <memory>

#include "apps/navier_stokes/multigrid/coarsest.hpp"
#include "apps/navier_stokes/multigrid/level.hpp"

namespace flow {

// An approximate inverse of a matrix of the pressure's kind: one V-cycle of aggregation multigrid. Prolongation is
// constant in each coarse cell and over-corrects by a factor (Braess 1995); two Chebyshev steps before and after
// smooth what is left. It is symmetric, so that it serves as a preconditioner of conjugate gradients.
class Multigrid {
 public:
  // Collective; `finest` is the matrix on this rank. Each level's ghosts are filled by an exchange of its own.
  Multigrid(Exchanges& exchanges, LevelRows finest, bool singular);

  // z = M r, for owned cells. Unless exchanges are timed, a GPU replays a graph that an earlier call has recorded.
  void apply(const double* r, double* z);

  // Cells of each level in all.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }

 private:
  void cycle(std::size_t number);

  struct Recorded {
    const double* r = nullptr;
    double* z = nullptr;
    int choices = 0;
    bool operator==(const Recorded&) const = default;
  };

  Exchanges& exchanges_;
  apps::Recording recording_;
  Recorded recorded_;
  std::vector<std::unique_ptr<MultigridLevel>> levels_;
  std::unique_ptr<CoarsestLevel> coarsest_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace flow
