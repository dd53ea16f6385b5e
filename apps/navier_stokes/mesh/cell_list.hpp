#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/navier_stokes/vector3.hpp"

namespace flow {

using Index = std::int32_t;

// A number as the place of an element of a vector.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The numbers are VTK's.
enum class CellShape : std::uint8_t {
  triangle = 5,
  quadrangle = 9,
  tetrahedron = 10,
  hexahedron = 12,
  wedge = 13,
  pyramid = 14
};

// A whole mesh: its points, and the points of each cell in VTK's order, a wedge's first triangle seen from inside
// counter-clockwise. In two dimensions the faces of a cell are its
// edges, and all is one unit thick.
struct CellList {
  int dimensions = 2;
  std::vector<Vector3> points;
  std::vector<CellShape> shapes;    // of each cell
  std::vector<std::int64_t> first;  // where the points of each cell begin in `vertices`, and the end
  std::vector<Index> vertices;
  std::vector<Index> same_as;  // of a periodic mesh: the point that stands for each point; else empty

  std::int64_t cells() const { return static_cast<std::int64_t>(shapes.size()); }
  std::span<const Index> vertices_of(std::int64_t cell) const;
  void add(CellShape shape, std::span<const Index> points_of_cell);
};

// The points of the faces of a cell of this shape, as positions in its list of points; the area vector of a face that
// lists its points so points out of the cell.
std::span<const std::vector<int>> faces_of(CellShape shape);

struct Geometry {
  Vector3 center;     // the center of gravity
  double volume = 0;  // the area in two dimensions
};
Geometry geometry_of_cell(const CellList& list, std::int64_t cell);

struct FaceGeometry {
  Vector3 center, area;
};
FaceGeometry geometry_of_face(const CellList& list, std::span<const Index> vertices);

// The part of each cell, by recursive coordinate bisection of their centers: each cut is across the longest side of the
// bounding box, and shares the cells in proportion to the parts. Depends on nothing else.
std::vector<int> bisect(std::span<const Vector3> centers, int parts);

}  // namespace flow
