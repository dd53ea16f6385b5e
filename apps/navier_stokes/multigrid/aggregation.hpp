#pragma once

#include <vector>
#include <waywiser/group/group.hpp>

#include "apps/navier_stokes/mesh/ghost_lists.hpp"
#include "apps/navier_stokes/solver/sparse_rows.hpp"

namespace flow {

// The cells of one level on this rank, and their matrix.
struct LevelRows {
  SparseRows rows;
  std::int64_t cells = 0;  // with ghosts
  std::vector<GhostLists> neighbors;
};

// The coarse cell of each owned cell, numbered from 0 without gaps. Cells of one rank are matched in pairs of strong
// neighbours, then those pairs, and so on `passes` times (Notay 2010, without its test of quality): a coarse cell has
// up to 2^passes cells.
std::vector<Index> aggregated(const SparseRows& rows, int passes);

// Collective. The next level: a coarse cell's row is the sum of the rows of its cells. Ghosts of the coarse level are
// those coarse cells of the neighbours that have a ghost of the fine level.
LevelRows coarser(waywiser::Group& group, const LevelRows& fine, const std::vector<Index>& coarse_of);

}  // namespace flow
