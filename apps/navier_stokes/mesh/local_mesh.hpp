#pragma once

#include <functional>
#include <vector>

#include "apps/navier_stokes/mesh/cell_list.hpp"
#include "apps/navier_stokes/mesh/ghost_lists.hpp"

namespace flow {

// What is given at a face on the border of the domain: the velocity; at an outlet the pressure 0; at a symmetry plane
// that nothing flows through it, and that the rest of the velocity does not change across it.
struct BoundaryCondition {
  Vector3 velocity;
  bool outlet = false;
  bool body = false;  // the force on it is of interest
  bool symmetry = false;
  std::int16_t name = -1;   // the number of the boundary; -1: it has no name
  bool has_scalar = false;  // else no scalar diffuses through it
  double scalar = 0;
};
struct BorderFace {
  Vector3 center;
  std::span<const Index> vertices;
};
using BoundaryAt = std::function<BoundaryCondition(const BorderFace&)>;

// The cells of one rank: first those that it owns, then its ghosts, which share a face with one of them. Both are in
// the order of the whole mesh within an owner, ghosts in the order of their owners.
struct LocalMesh {
  struct Face {
    Index inside = 0, outside = 0;      // cells; the inside cell comes first in the whole mesh. Outside below 0: border
    std::int64_t number = 0;            // in the whole mesh: the inside cell's, times 6, and its place there
    Vector3 area;                       // out of the inside cell
    Vector3 from_inside, from_outside;  // to the face's center; also right where the mesh is periodic
  };

  int dimensions = 2;
  std::int64_t owned = 0, cells = 0;
  std::vector<std::int64_t> global;  // of each cell, its number in the whole mesh
  std::vector<double> volume;        // of owned cells
  std::vector<Face> faces;
  std::vector<BoundaryCondition> boundary;  // of border faces: outside is -1 - its place here
  std::vector<Index> first_face;            // where each owned cell's faces begin in `faces_of_cell`, and the end
  std::vector<Index> faces_of_cell;         // in the order of the cell's shape
  std::vector<GhostLists> neighbors;        // in the order of the ranks

  // For output: the owned cells with their points.
  CellList owned_cells;
};

// The part of rank `rank`; `part_of` gives the rank of each cell. Throws invalid_input if a cell has no volume.
LocalMesh local_mesh(const CellList& whole, const std::vector<int>& part_of, int rank, const BoundaryAt& boundary_at);

}  // namespace flow
