#include "waywiser/measure/switches.hpp"

#include <limits>
#include <map>
#include <set>

#include "waywiser/measure/size_grid.hpp"

namespace waywiser {
namespace {

constexpr Bytes smallest = 64;
constexpr double close_sizes = 1.25;    // neighbours of this ratio tell enough about a switch between them,
constexpr double closest_sizes = 1.05;  // and of this one about a cliff:
constexpr double doubtful = 1.15;       // times the time of a larger message
constexpr double cliff = 1.5;           // a switch of paths whose times have this ratio

struct Winner {
  Bytes bytes;
  const Path* path;
};

std::vector<Winner> winners(const PointStore& store, const std::vector<Path>& paths, Operation operation) {
  std::map<Bytes, std::pair<Seconds, const Path*>> best;
  for (const Path& path : paths)
    for (const Point& point : store.points(path, operation)) {
      const auto [entry, fresh] = best.try_emplace(point.bytes, point.seconds, &path);
      if (!fresh && point.seconds < entry->second.first) entry->second = {point.seconds, &path};
    }
  std::vector<Winner> list;
  for (const auto& [bytes, entry] : best) list.push_back({bytes, entry.second});
  return list;
}

// The cost here of the winner at the other end; infinite if it was not measured or failed.
double loss(const PointStore& store, Operation operation, const Winner& here, const Winner& other) {
  const Point* fast = store.find(*here.path, operation, here.bytes);
  const Point* slow = store.find(*other.path, operation, here.bytes);
  if (fast == nullptr || slow == nullptr) return std::numeric_limits<double>::infinity();
  return slow->seconds / fast->seconds;
}

}  // namespace

std::vector<Bytes> switch_sizes(const PointStore& store, const std::vector<Path>& paths, Operation operation) {
  const std::vector<Winner> all = winners(store, paths, operation);
  std::vector<Bytes> sizes;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Winner &left = all[i - 1], &right = all[i];
    const Bytes middle = middle_size(left.bytes, right.bytes);
    if (left.path == right.path || middle <= left.bytes || right.bytes <= smallest) continue;
    const double gap = static_cast<double>(right.bytes) / static_cast<double>(left.bytes);
    const bool steep = loss(store, operation, left, right) > cliff || loss(store, operation, right, left) > cliff;
    if (gap > close_sizes || (gap > closest_sizes && steep)) sizes.push_back(middle);
  }
  return sizes;
}

std::vector<Bytes> doubtful_sizes(const PointStore& store, const std::vector<Path>& paths, Operation operation) {
  std::set<Bytes> sizes;
  for (const Path& path : paths) {
    const std::vector<Point> points = store.points(path, operation);
    Seconds larger = std::numeric_limits<Seconds>::infinity();
    for (auto point = points.rbegin(); point != points.rend(); ++point) {
      if (point->seconds > doubtful * larger) sizes.insert(point->bytes);
      larger = std::min(larger, point->seconds);
    }
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace waywiser
