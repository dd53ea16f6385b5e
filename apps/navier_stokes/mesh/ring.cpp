#include <numbers>
#include <string>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/mesh/generators.hpp"

namespace flow {

CellList ring(Index around, Index outward, double far) {
  if (around < 8 || outward < 4 || !(far > 1))
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a ring of " + std::to_string(around) + " x " +
                                                                  std::to_string(outward) +
                                                                  " cells: at least 8 x 4, and to a radius above 1");
  CellList list;
  for (Index layer = 0; layer <= outward; ++layer) {
    const double radius = 0.5 * std::pow(2 * far, static_cast<double>(layer) / outward);
    for (Index i = 0; i < around; ++i) {
      const double even = 2 * std::numbers::pi * i / around, angle = even - 0.5 * std::sin(even);
      list.points.push_back({radius * std::cos(angle), radius * std::sin(angle), 0});
    }
  }
  for (Index layer = 0; layer < outward; ++layer)
    for (Index i = 0; i < around; ++i) {
      const Index next = (i + 1) % around, inner = layer * around, outer = inner + around;
      list.add(CellShape::quadrangle, std::array{inner + i, outer + i, outer + next, inner + next});
    }
  return list;
}

}  // namespace flow
