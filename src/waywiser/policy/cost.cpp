#include "waywiser/policy/cost.hpp"

#include <algorithm>
#include <limits>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

double between(double left, double right, double share) { return left + share * (right - left); }

}  // namespace

Cost::Cost(std::vector<Point> points) : points_(std::move(points)) {
  for (std::size_t i = 1; i < points_.size(); ++i)
    if (points_[i].bytes <= points_[i - 1].bytes)
      throw Error(ErrorKind::invalid_input, "cost: points must be in ascending order of size");
}

bool Cost::known(double bytes) const {
  return !points_.empty() && bytes >= static_cast<double>(points_.front().bytes) &&
         bytes <= static_cast<double>(points_.back().bytes);
}

Cost::Piece Cost::piece(double bytes) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), bytes, [](const Point& point, double value) {
    return static_cast<double>(point.bytes) < value;
  });
  if (above == points_.begin()) return {&*above, &*above, 0};
  const Point& left = *(above - 1);
  const double width = static_cast<double>(above->bytes - left.bytes);
  return {&left, &*above, (bytes - static_cast<double>(left.bytes)) / width};
}

Seconds Cost::seconds(double bytes) const {
  if (!known(bytes)) return infinity;
  const auto [left, right, share] = piece(bytes);
  return between(left->seconds, right->seconds, share);
}

Interval Cost::interval(double bytes) const {
  if (!known(bytes)) return {infinity, infinity};
  const auto [left, right, share] = piece(bytes);
  return {between(left->low, right->low, share), between(left->high, right->high, share)};
}

}  // namespace waywiser
