#pragma once

#include <array>

#include "apps/navier_stokes/mesh/cell_list.hpp"

namespace flow {

// How the cells of a flat box lie.
enum class BoxCells { even, perturbed, triangles };

struct Box {
  std::array<Index, 3> cells = {1, 1, 0};  // along x, y, z; none along z: a flat mesh
  Vector3 size = {1, 1, 1};
  std::array<bool, 3> periodic = {};
  BoxCells shape = BoxCells::even;  // perturbed: inner points are moved by up to a fifth of a cell
};
// Throws invalid_input: no cells; triangles of a box that is not flat or has odd numbers of cells.
CellList box(const Box& box);

// Around a cylinder of diameter 1 at the origin: `around` cells along the circle, `outward` to the radius `far`, each
// longer than the one before by the same factor. Along the circle cells at its right side are half as long as the mean,
// at its left side one and a half times: a wake needs more. Throws invalid_input.
CellList ring(Index around, Index outward, double far);

// A pipe of radius 0.5 with a bend of 90 degrees: along x, around (inlet, radius, 0), along y. The cross section has a
// square of `across` x `across` cells, and a ring of `across` / 2 layers around it.
struct Bend {
  Index across = 4, along = 60;  // cells
  double inlet = 2, radius = 1.5, outlet = 4;
};
CellList pipe_bend(const Bend& bend);

// The same way of a draft tube, which slows the water behind a turbine: a cone, an elbow in which the circle becomes a
// wide rounded rectangle, and a diffuser. The outlet has 4 times the area of the inlet. Throws invalid_input.
CellList draft_tube(const Bend& bend);

}  // namespace flow
