#pragma once

#include <waywiser/halo/partition.hpp>

#include "apps/navier_stokes/multigrid/aggregation.hpp"

namespace flow {

// A level that every rank has whole, and computes whole: its loops are so short that they take less time than its
// exchanges would.
struct WholeLevel {
  LevelRows level;                // rows of all ranks, in their order
  std::vector<int> rank_of;       // each row
  std::vector<std::size_t> rows;  // of each rank
  std::vector<Index> place;       // of this rank's cells, then of its ghosts
  std::int64_t first = 0;         // row of this rank
};

// Collective.
WholeLevel whole_level(waywiser::Group& group, const LevelRows& mine);

// Every rank gives its rows to all others.
waywiser::HaloPartition gathering(int rank, const std::vector<std::size_t>& rows);

}  // namespace flow
