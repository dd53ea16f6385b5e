#include <string>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/mesh/generators.hpp"

namespace flow {
namespace {

// Between -1 and 1; depends on the numbers alone (the mixing function of splitmix64).
double scatter(std::uint64_t point, std::uint64_t direction) {
  std::uint64_t z = (2 * point + direction + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) / static_cast<double>(1ULL << 52U) - 1;
}

void check(const Box& box) {
  const auto [nx, ny, nz] = box.cells;
  const auto points = static_cast<double>(nx + 1) * (ny + 1) * (nz + 1);
  if (nx < 1 || ny < 1 || nz < 0 || points > 2e9)
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a box of " + std::to_string(nx) + " x " +
                                                                  std::to_string(ny) + " x " + std::to_string(nz) +
                                                                  " cells: at least 1 x 1, and below 2e9 points");
  if (box.shape == BoxCells::triangles && (nz > 0 || nx % 2 != 0 || ny % 2 != 0))
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "triangles need a flat box with even numbers of cells");
  if ((box.periodic[0] && nx < 3) || (box.periodic[1] && ny < 3) || (box.periodic[2] && nz > 0 && nz < 3))
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a periodic direction needs 3 cells");
}

}  // namespace

CellList box(const Box& box) {
  check(box);
  const auto [nx, ny, nz] = box.cells;
  const Vector3 step{box.size.x / nx, box.size.y / ny, nz > 0 ? box.size.z / nz : 0};
  const bool flat = nz == 0;
  CellList list;
  list.dimensions = flat ? 2 : 3;
  const auto point = [&](Index i, Index j, Index k) { return i + (nx + 1) * (j + (ny + 1) * k); };
  const double reach = box.shape == BoxCells::perturbed ? 0.2 : 0;
  const bool periodic = box.periodic[0] || box.periodic[1] || box.periodic[2];
  for (Index k = 0; k <= nz; ++k)
    for (Index j = 0; j <= ny; ++j)
      for (Index i = 0; i <= nx; ++i) {
        Vector3 at{i * step.x, j * step.y, k * step.z};
        if (i > 0 && i < nx && j > 0 && j < ny && (flat || (k > 0 && k < nz))) {
          const auto number = static_cast<std::uint64_t>(3) * static_cast<std::uint64_t>(point(i, j, k));
          at += reach * Vector3{step.x * scatter(number, 0), step.y * scatter(number, 1), step.z * scatter(number, 2)};
        }
        list.points.push_back(at);
        if (periodic)
          list.same_as.push_back(
              point(box.periodic[0] ? i % nx : i, box.periodic[1] ? j % ny : j, box.periodic[2] && !flat ? k % nz : k));
      }
  for (Index k = 0; k < (flat ? 1 : nz); ++k)
    for (Index j = 0; j < ny; ++j)
      for (Index i = 0; i < nx; ++i) {
        const std::array<Index, 4> low = {point(i, j, k), point(i + 1, j, k), point(i + 1, j + 1, k),
                                          point(i, j + 1, k)};
        if (box.shape == BoxCells::triangles) {
          // No triangle has two sides on the border.
          const std::size_t s = (i + j) % 2 == 0 ? 0 : 1;
          list.add(CellShape::triangle, std::array{low[s], low[s + 1], low[s + 2]});
          list.add(CellShape::triangle, std::array{low[s], low[s + 2], low[(s + 3) % 4]});
        } else if (flat) {
          list.add(CellShape::quadrangle, low);
        } else {
          const Index up = (nx + 1) * (ny + 1);
          list.add(CellShape::hexahedron,
                   std::array{low[0], low[1], low[2], low[3], low[0] + up, low[1] + up, low[2] + up, low[3] + up});
        }
      }
  return list;
}

}  // namespace flow
