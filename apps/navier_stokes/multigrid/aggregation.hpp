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

// The coarse cell of each row, numbered from 0 without gaps. Rows are matched in pairs of strong neighbours, then those
// pairs, and so on `passes` times (Notay 2010, without its test of quality): a coarse cell has up to 2^passes cells,
// all of one rank. `rank_of` says of which each row is; empty: all of one.
std::vector<Index> aggregated(const SparseRows& rows, int passes, const std::vector<int>& rank_of);

// Collective. The next level: a coarse cell's row is the sum of the rows of its cells. Ghosts of the coarse level are
// those coarse cells of the neighbours that have a ghost of the fine level; `coarse_of` gets theirs too.
LevelRows coarser(waywiser::Group& group, const LevelRows& fine, std::vector<Index>& coarse_of);

}  // namespace flow
