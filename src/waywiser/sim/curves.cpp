#include "waywiser/sim/curves.hpp"

#include <algorithm>
#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr std::size_t most_curves = 65536;
constexpr double most_ratio = 1e6;

std::pair<double, double> point_of(const Json& entry, std::string_view what) {
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number_unsigned() || !entry[1].is_number())
    refuse_input(what, "a point of a curve is [bytes, ratio]");
  const auto ratio = entry[1].get<double>();
  if (!(ratio > 1 / most_ratio && ratio < most_ratio)) refuse_input(what, "the ratio of a curve is from 1e-6 to 1e6");
  return {std::log(std::max(1.0, entry[0].get<double>())), std::log(ratio)};
}

}  // namespace

double Curves::ratio(const Path& path, Operation operation, Bytes bytes) const {
  const auto found = curves_.find({pair_text(path) + " " + label(path), operation});
  if (found == curves_.end()) return 1;
  const Points& points = found->second;
  const double at = std::log(std::max<double>(1, static_cast<double>(bytes)));
  const auto above = std::ranges::upper_bound(points, at, {}, &Points::value_type::first);
  if (above == points.begin()) return std::exp(points.front().second);
  if (above == points.end()) return std::exp(points.back().second);
  const auto below = above - 1;
  const double along = (at - below->first) / (above->first - below->first);
  return std::exp(below->second + (above->second - below->second) * along);
}

Curves curves_from_json(const Json& value, std::string_view what) {
  if (!value.is_array() || value.size() > most_curves) refuse_input(what, "'curves' must be a list");
  Curves curves;
  for (const Json& entry : value) {
    Curves::Points points;
    for (const Json& point : require_array(entry, "ratios", what)) points.push_back(point_of(point, what));
    if (points.empty() || !std::ranges::is_sorted(points, {}, &Curves::Points::value_type::first))
      refuse_input(what, "a curve has points with ascending sizes");
    const Operation operation = parse_operation(require_string(entry, "operation", what));
    curves.curves_[{require_string(entry, "path", what), operation}] = std::move(points);
  }
  return curves;
}

}  // namespace waywiser::sim
