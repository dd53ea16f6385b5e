#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/halo/partition.hpp"

namespace waywiser {

// The cells that one rank owns, in numbers of the whole grid.
struct GridBox {
  std::vector<std::int64_t> first, count;

  bool operator==(const GridBox&) const = default;
};

// A structured grid of 1 to 4 dimensions that is cut into boxes, one for each rank; some may be empty. Each rank's
// arrays hold its box with `ghost` cells more on both sides of each dimension. The slowest dimension comes first.
struct HaloGrid {
  std::vector<std::int64_t> shape;  // cells of the whole grid
  std::vector<std::int64_t> ghost;  // the width, by dimension
  std::vector<bool> periodic;
  std::vector<GridBox> boxes;  // by rank

  // The shape of a rank's arrays, with ghosts.
  [[gnu::visibility("default")]] std::vector<std::int64_t> local_shape(int rank) const;
};

// How many parts each dimension is cut into: of all products that give `ranks`, the one with the least cells on cuts;
// of equal ones, that which cuts slower dimensions more.
[[gnu::visibility("default")]] std::vector<int> ranks_per_dimension(std::span<const std::int64_t> shape, int ranks);

// Boxes of equal size, or one cell more in the first ones; the last dimension's neighbours are consecutive ranks.
// Throws invalid_input like grid_partition().
[[gnu::visibility("default")]] HaloGrid even_grid(std::vector<std::int64_t> shape, std::vector<std::int64_t> ghost,
                                                  std::vector<bool> periodic, std::span<const int> per_dimension);

// All ghosts of a rank, with edges and corners, each from the rank that owns the cell: also from itself, and from ranks
// farther away if boxes are thinner than ghosts are wide. Ghosts beyond a border that is not periodic are left out.
// Throws invalid_input: not 1 to 4 dimensions, a shape or width below zero, boxes that overlap or leave cells out.
[[gnu::visibility("default")]] HaloPartition grid_partition(const HaloGrid& grid, int rank);

}  // namespace waywiser
