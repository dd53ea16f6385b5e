#include <algorithm>
#include <array>
#include <numeric>

#include "apps/navier_stokes/mesh/cell_list.hpp"

namespace flow {
namespace {

using Coordinate = double Vector3::*;

Coordinate longest_side(std::span<const Vector3> centers, std::span<const Index> cells) {
  Vector3 low = centers[static_cast<std::size_t>(cells[0])], high = low;
  const std::array<Coordinate, 3> all = {&Vector3::x, &Vector3::y, &Vector3::z};
  for (const Index cell : cells)
    for (const Coordinate c : all) {
      low.*c = std::min(low.*c, centers[static_cast<std::size_t>(cell)].*c);
      high.*c = std::max(high.*c, centers[static_cast<std::size_t>(cell)].*c);
    }
  return *std::ranges::max_element(all, {}, [&](Coordinate c) { return high.*c - low.*c; });
}

void cut(std::span<const Vector3> centers, std::span<Index> cells, int first, int parts, std::vector<int>& part_of) {
  if (parts == 1 || cells.empty()) {
    for (const Index cell : cells) part_of[static_cast<std::size_t>(cell)] = first;
    return;
  }
  const int lower = parts / 2;
  const std::size_t middle = cells.size() * static_cast<std::size_t>(lower) / static_cast<std::size_t>(parts);
  const Coordinate c = longest_side(centers, cells);
  std::nth_element(
      cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(middle), cells.end(), [&](Index a, Index b) {
        const double at_a = centers[static_cast<std::size_t>(a)].*c, at_b = centers[static_cast<std::size_t>(b)].*c;
        return at_a != at_b ? at_a < at_b : a < b;
      });
  cut(centers, cells.first(middle), first, lower, part_of);
  cut(centers, cells.subspan(middle), first + lower, parts - lower, part_of);
}

}  // namespace

std::vector<int> bisect(std::span<const Vector3> centers, int parts) {
  std::vector<Index> cells(centers.size());
  std::iota(cells.begin(), cells.end(), 0);
  std::vector<int> part_of(centers.size(), 0);
  cut(centers, cells, 0, parts, part_of);
  return part_of;
}

}  // namespace flow
