#include "waywiser/measure/contention.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr double hopeless = 2.5, hopeless_when_large = 4;
constexpr Bytes near_sizes = 256;  // a ratio

// 0: nothing was measured.
Seconds fastest(const PointStore& store, const std::vector<Path>& paths, Operation operation, Bytes bytes) {
  Seconds best = 0;
  for (const Path& path : paths)
    if (const Point* point = store.find(path, operation, bytes))
      if (best == 0 || point->seconds < best) best = point->seconds;
  return best;
}

bool is_hopeless(const PointStore& store, const std::vector<Path>& paths, const Path& path, Operation operation,
                 Bytes bytes, Bytes large) {
  const std::vector<Point> points = store.points(path, operation);
  const auto above = std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.bytes > bytes; });
  if (above == points.begin()) return false;
  const Point& below = *(above - 1);
  const auto ratio = [&](const Point& p) { return p.seconds / fastest(store, paths, operation, p.bytes); };
  if (bytes >= large && ratio(below) > hopeless_when_large) return true;
  return above != points.end() && above->bytes / near_sizes <= below.bytes && ratio(below) > hopeless &&
         ratio(*above) > hopeless;
}

}  // namespace

std::vector<Path> close_at(const PointStore& store, const std::vector<Path>& paths, Operation operation, Bytes bytes,
                           double within) {
  const Seconds best = fastest(store, paths, operation, bytes);
  std::vector<Path> close;
  std::ranges::copy_if(paths, std::back_inserter(close), [&](const Path& path) {
    const Point* point = store.find(path, operation, bytes);
    if (point == nullptr) return false;
    Seconds possible = point->seconds;
    for (const Point& larger : store.points(path, operation))
      if (larger.bytes > bytes) possible = std::min(possible, larger.seconds);
    return possible <= within * best;
  });
  return close;
}

std::vector<Path> promising_at(const PointStore& store, const std::vector<Path>& paths, Operation operation,
                               Bytes bytes, Bytes large) {
  std::vector<Path> promising;
  std::ranges::copy_if(paths, std::back_inserter(promising),
                       [&](const Path& path) { return !is_hopeless(store, paths, path, operation, bytes, large); });
  return promising;
}

}  // namespace waywiser
