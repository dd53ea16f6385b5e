#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"

namespace waywiser {

// Cells that a rank gives to or takes from a neighbour: a part of an array with one uint8 for each cell.
struct HaloSide {
  int peer = 0;
  ArrayPart cells;
  // Of a grid: where the neighbour lies, -1, 0 or 1 in each dimension; of a mesh: empty.
  std::vector<int> face = {};
};

// What all ranks must have alike of a grid, as numbers that tell grids apart; all 0: of a mesh.
struct HaloGridMarks {
  std::uint64_t shape = 0, ghost = 0, periodic = 0, boxes = 0;

  bool operator==(const HaloGridMarks&) const = default;
};

// What one rank exchanges with its neighbours, in cells of its arrays. Between two ranks the k-th entry that one gives
// and the k-th entry that the other takes have equal sizes. A rank may be its own neighbour.
struct HaloPartition {
  int rank = 0, ranks = 1;
  std::size_t cells = 0;  // of this rank's arrays, with ghosts
  std::vector<HaloSide> gives, takes;
  HaloGridMarks grid = {};
};

// One neighbour of an unstructured mesh: the cells that it is given, and those whose values it gives, in an order that
// both ranks know.
struct HaloLists {
  int peer = 0;
  std::span<const std::int64_t> give, take;
};

// A mesh by its lists of cells. Throws invalid_input like check_partition().
[[gnu::visibility("default")]] HaloPartition listed_partition(int rank, int ranks, std::size_t cells,
                                                              std::span<const HaloLists> neighbors);

// Throws invalid_input if a rank does not exist, a cell lies outside, a cell is taken twice or also given, or what this
// rank gives itself does not match what it takes.
[[gnu::visibility("default")]] void check_partition(const HaloPartition& partition);

}  // namespace waywiser
