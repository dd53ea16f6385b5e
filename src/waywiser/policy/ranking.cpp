#include "waywiser/policy/ranking.hpp"

namespace waywiser {

std::optional<std::size_t> runner_up(std::span<const Cost> costs, std::size_t choice, double bytes) {
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (i != choice && costs[i].known(bytes) && (!next || costs[i].seconds(bytes) < costs[*next].seconds(bytes)))
      next = i;
  return next;
}

std::vector<std::pair<Bytes, Seconds>> points_in(const Segment& segment, std::span<const Point> points) {
  std::vector<std::pair<Bytes, Seconds>> found;
  for (const Point& point : points)
    if (point.bytes >= segment.from && point.bytes <= segment.to) found.emplace_back(point.bytes, point.seconds);
  return found;
}

}  // namespace waywiser
