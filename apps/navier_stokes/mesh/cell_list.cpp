#include "apps/navier_stokes/mesh/cell_list.hpp"

#include <array>

namespace flow {

std::span<const Index> CellList::vertices_of(std::int64_t cell) const {
  const auto begin = static_cast<std::size_t>(first[static_cast<std::size_t>(cell)]);
  const auto end = static_cast<std::size_t>(first[static_cast<std::size_t>(cell) + 1]);
  return std::span(vertices).subspan(begin, end - begin);
}

void CellList::add(CellShape shape, std::span<const Index> points_of_cell) {
  if (first.empty()) first.push_back(0);
  shapes.push_back(shape);
  vertices.insert(vertices.end(), points_of_cell.begin(), points_of_cell.end());
  first.push_back(static_cast<std::int64_t>(vertices.size()));
}

std::span<const std::vector<int>> faces_of(CellShape shape) {
  static const std::vector<std::vector<int>> triangle = {{0, 1}, {1, 2}, {2, 0}};
  static const std::vector<std::vector<int>> quadrangle = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  static const std::vector<std::vector<int>> hexahedron = {{0, 3, 2, 1}, {4, 5, 6, 7}, {0, 1, 5, 4},
                                                           {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}};
  static const std::vector<std::vector<int>> tetrahedron = {{0, 2, 1}, {0, 1, 3}, {1, 2, 3}, {0, 3, 2}};
  static const std::vector<std::vector<int>> wedge = {{0, 2, 1}, {3, 4, 5}, {0, 1, 4, 3}, {1, 2, 5, 4}, {2, 0, 3, 5}};
  static const std::vector<std::vector<int>> pyramid = {{0, 3, 2, 1}, {0, 1, 4}, {1, 2, 4}, {2, 3, 4}, {3, 0, 4}};
  switch (shape) {
    case CellShape::triangle: return triangle;
    case CellShape::quadrangle: return quadrangle;
    case CellShape::hexahedron: return hexahedron;
    case CellShape::tetrahedron: return tetrahedron;
    case CellShape::wedge: return wedge;
    case CellShape::pyramid: return pyramid;
  }
  return {};
}

FaceGeometry geometry_of_face(const CellList& list, std::span<const Index> vertices) {
  const auto point = [&](std::size_t i) { return list.points[static_cast<std::size_t>(vertices[i])]; };
  if (list.dimensions == 2) {
    const Vector3 along = point(1) - point(0);
    return {0.5 * (point(0) + point(1)), {along.y, -along.x, 0}};
  }
  // Triangles around the mean of the points; the center is weighted by their areas.
  Vector3 mean, area, moment;
  for (std::size_t i = 0; i < vertices.size(); ++i) mean += (1.0 / static_cast<double>(vertices.size())) * point(i);
  double size = 0;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const Vector3 a = point(i), b = point((i + 1) % vertices.size());
    const Vector3 part = 0.5 * cross(a - mean, b - mean);
    area += part;
    size += norm(part);
    moment += (norm(part) / 3) * (mean + a + b);
  }
  return {(1 / size) * moment, area};
}

Geometry geometry_of_cell(const CellList& list, std::int64_t cell) {
  const std::span<const Index> vertices = list.vertices_of(cell);
  const Vector3 origin = list.points[static_cast<std::size_t>(vertices[0])];
  // Pyramids, in two dimensions triangles, from one point of the cell to its faces.
  Geometry whole;
  Vector3 moment;
  const double share = 1.0 / list.dimensions;
  for (const std::vector<int>& places : faces_of(list.shapes[static_cast<std::size_t>(cell)])) {
    std::array<Index, 4> face{};
    for (std::size_t i = 0; i < places.size(); ++i) face[i] = vertices[static_cast<std::size_t>(places[i])];
    const FaceGeometry geometry = geometry_of_face(list, std::span(face).first(places.size()));
    const double part = share * dot(geometry.center - origin, geometry.area);
    whole.volume += part;
    const double reach = static_cast<double>(list.dimensions) / (list.dimensions + 1);
    moment += part * (reach * (geometry.center - origin));
  }
  whole.center = origin + (1 / whole.volume) * moment;
  return whole;
}

}  // namespace flow
