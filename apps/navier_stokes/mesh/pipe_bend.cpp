#include <algorithm>
#include <functional>
#include <numbers>
#include <string>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/mesh/generators.hpp"

namespace flow {
namespace {

constexpr double pipe_radius = 0.5;

// A cross section of the pipe: points in its plane, and quadrangles.
struct Section {
  std::vector<std::array<double, 2>> points;
  std::vector<std::array<Index, 4>> cells;
};

// The border of the square, counter-clockwise from its lower left corner: i and j of each point.
std::vector<std::array<Index, 2>> border_of_square(Index n) {
  std::vector<std::array<Index, 2>> border;
  for (Index i = 0; i < n; ++i) border.push_back({i, 0});
  for (Index j = 0; j < n; ++j) border.push_back({n, j});
  for (Index i = n; i > 0; --i) border.push_back({i, n});
  for (Index j = n; j > 0; --j) border.push_back({0, j});
  return border;
}

Section section(Index n) {
  Section made;
  const double half = 0.55 * pipe_radius;
  for (Index j = 0; j <= n; ++j)
    for (Index i = 0; i <= n; ++i) {
      // The square's sides bulge, so that angles at its corners stay well below 180 degrees.
      const double s = 2.0 * i / n - 1, t = 2.0 * j / n - 1;
      const double bulge = 0.22;
      made.points.push_back({half * s * (1 + bulge * (1 - t * t)) / (1 + bulge / 2),
                             half * t * (1 + bulge * (1 - s * s)) / (1 + bulge / 2)});
    }
  for (Index j = 0; j < n; ++j)
    for (Index i = 0; i < n; ++i) {
      const Index low = j * (n + 1) + i;
      made.cells.push_back({low, low + 1, low + n + 2, low + n + 1});
    }
  const std::vector<std::array<Index, 2>> border = border_of_square(n);
  const Index around = 4 * n, layers = std::max<Index>(n / 2, 1);
  std::vector<Index> inner;
  for (const auto& [i, j] : border) inner.push_back(j * (n + 1) + i);
  const std::vector<Index> square = inner;
  for (Index layer = 1; layer <= layers; ++layer) {
    std::vector<Index> outer;
    for (Index k = 0; k < around; ++k) {
      const double angle = -0.75 * std::numbers::pi + 2 * std::numbers::pi * k / around;
      const auto& from = made.points[static_cast<std::size_t>(square[static_cast<std::size_t>(k)])];
      const double share = static_cast<double>(layer) / layers;
      outer.push_back(static_cast<Index>(made.points.size()));
      made.points.push_back({from[0] + share * (pipe_radius * std::cos(angle) - from[0]),
                             from[1] + share * (pipe_radius * std::sin(angle) - from[1])});
    }
    for (std::size_t k = 0; k < outer.size(); ++k) {
      const std::size_t next = (k + 1) % outer.size();
      made.cells.push_back({inner[k], outer[k], outer[next], inner[next]});
    }
    inner = outer;
  }
  return made;
}

// The cross section at a place of the duct: half of its extent towards the middle of the bend and across it, and how
// angular it is. 2: an ellipse; the greater, the nearer to a rectangle.
struct Shape {
  double towards = pipe_radius, across = pipe_radius, angular = 2;
};

// By which a point of the round pipe moves out, so that |a|^n + |b|^n stays what it is for a circle.
double stretch(double a, double b, double angular) {
  const double radius = std::hypot(a, b);
  if (radius == 0 || angular == 2) return 1;
  return std::pow(std::pow(std::abs(a / radius), angular) + std::pow(std::abs(b / radius), angular), -1 / angular);
}

// The section swept along x, around (inlet, radius, 0) by 90 degrees, and along y. `shape_at`: by the length along the
// middle line.
CellList swept(const Bend& bend, const std::function<Shape(double)>& shape_at) {
  const Section plane = section(bend.across);
  const double arc = std::numbers::pi / 2 * bend.radius, length = bend.inlet + arc + bend.outlet;
  CellList list;
  list.dimensions = 3;
  for (Index k = 0; k <= bend.along; ++k) {
    const double at = length * k / bend.along;
    const double angle = std::clamp(at - bend.inlet, 0.0, arc) / bend.radius;  // by which the duct has turned
    const Vector3 along{std::cos(angle), std::sin(angle), 0}, inward{-std::sin(angle), std::cos(angle), 0};
    const double straight = at < bend.inlet ? at - bend.inlet : std::max(at - bend.inlet - arc, 0.0);
    const Vector3 middle = Vector3{bend.inlet, bend.radius, 0} + (-bend.radius) * inward + straight * along;
    const Shape shape = shape_at(at);
    for (const auto& [a, b] : plane.points) {
      const double out = stretch(a, b, shape.angular) / pipe_radius;
      list.points.push_back(middle + out * shape.towards * a * inward + Vector3{0, 0, out * shape.across * b});
    }
  }
  const auto layer = static_cast<Index>(plane.points.size());
  for (Index k = 0; k < bend.along; ++k)
    for (const auto& [a, b, c, d] : plane.cells) {
      const Index low = k * layer, up = low + layer;
      list.add(CellShape::hexahedron, std::array{low + a, low + b, low + c, low + d, up + a, up + b, up + c, up + d});
    }
  return list;
}

void check(const Bend& bend, double widest, const std::string& what) {
  if (bend.across < 2 || bend.along < 4 || !(bend.inlet > 0 && bend.outlet > 0 && bend.radius > widest))
    throw waywiser::Error(waywiser::ErrorKind::invalid_input, "a " + what + " of " + std::to_string(bend.across) +
                                                                  " cells across and " + std::to_string(bend.along) +
                                                                  " along: at least 2 and 4");
}

}  // namespace

CellList pipe_bend(const Bend& bend) {
  check(bend, pipe_radius, "bend");
  return swept(bend, [](double) { return Shape{}; });
}

CellList draft_tube(const Bend& bend) {
  const double end_of_elbow = bend.inlet + std::numbers::pi / 2 * bend.radius;
  const std::array<double, 4> places = {0, bend.inlet, end_of_elbow, end_of_elbow + bend.outlet};
  constexpr std::array<Shape, 4> shapes = {{{0.5, 0.5, 2}, {0.6, 0.6, 2}, {0.5, 0.9, 4}, {0.7, 1.2, 4}}};
  check(bend, shapes[1].towards, "draft tube");
  return swept(bend, [places, shapes](double at) {
    std::size_t i = 0;
    while (i + 2 < places.size() && at > places[i + 1]) ++i;
    const double share = (at - places[i]) / (places[i + 1] - places[i]);
    const auto between = [share](double from, double to) { return from + share * (to - from); };
    const Shape &from = shapes[i], &to = shapes[i + 1];
    return Shape{between(from.towards, to.towards), between(from.across, to.across), between(from.angular, to.angular)};
  });
}

}  // namespace flow
