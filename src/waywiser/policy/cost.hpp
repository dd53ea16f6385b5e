#pragma once

#include <limits>
#include <span>
#include <vector>

#include "waywiser/measure/profile.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// The time of one path over the message size: linear pieces through the measured points. Infinite outside the measured
// sizes, so that nothing is chosen without a measurement.
class Cost {
 public:
  Cost() = default;                          // infinite everywhere
  explicit Cost(std::vector<Point> points);  // ascending sizes; throws invalid_input otherwise

  Seconds seconds(double bytes) const;
  Interval interval(double bytes) const;  // the confidence interval, interpolated like the median
  bool known(double bytes) const;
  bool empty() const noexcept { return points_.empty(); }
  std::span<const Point> points() const noexcept { return points_; }

 private:
  struct Piece {
    const Point* left;
    const Point* right;
    double share;  // 0 at left, 1 at right
  };
  Piece piece(double bytes) const;

  std::vector<Point> points_;
};

}  // namespace waywiser
