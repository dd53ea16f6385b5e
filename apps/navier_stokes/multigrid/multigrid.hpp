#pragma once

#include <memory>
#include <optional>

#include "apps/navier_stokes/multigrid/coarsest.hpp"
#include "apps/navier_stokes/multigrid/level.hpp"
#include "apps/navier_stokes/solver/replay.hpp"

namespace flow {

// An approximate inverse of a matrix of the pressure's kind: one V-cycle of aggregation multigrid. Prolongation is
// constant in each coarse cell and over-corrects by a factor (Braess 1995); two Chebyshev steps before and after
// smooth what is left. It is symmetric, so that it serves as a preconditioner of conjugate gradients.
//
// Ranks share the fine levels, whose ghosts are filled by exchanges of their own. Of the first level that has few cells
// each rank gets the whole right-hand side, by one exchange; it computes that level and those below for itself.
class Multigrid {
 public:
  // Collective; `finest` is the matrix on this rank. A level of at most `whole_cells` cells is whole at each rank.
  Multigrid(Exchanges& exchanges, LevelRows finest, bool singular, std::int64_t whole_cells);

  // M r, for owned cells; ghosts are filled.
  const double* apply(const double* r);

  // Cells of each level in all.
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  // The first of them that is whole at each rank.
  std::size_t first_whole() const { return first_whole_; }

 private:
  void cycle(std::size_t number, const double* b);

  Exchanges& exchanges_;
  Replay replay_;
  std::vector<std::unique_ptr<MultigridLevel>> levels_;
  std::unique_ptr<CoarsestLevel> coarsest_;
  std::vector<std::int64_t> sizes_;
  std::size_t first_whole_ = 0;
  std::vector<std::size_t> rows_;         // of the first whole level, those of each rank
  std::optional<std::size_t> gathering_;  // its exchange
};

}  // namespace flow
