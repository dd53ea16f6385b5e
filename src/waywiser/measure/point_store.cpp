#include "waywiser/measure/point_store.hpp"

#include <algorithm>
#include <limits>

namespace waywiser {

const Point* PointStore::find(const Path& path, Operation operation, Bytes bytes) const {
  const Key key{text_of(path), operation};
  const auto series = points_.find(key);
  if (series == points_.end()) return nullptr;
  const auto point = series->second.find(bytes);
  return point == series->second.end() || bytes >= failed_from(key) ? nullptr : &point->second;
}

void PointStore::add(const Path& path, Operation operation, const Point& point) {
  points_[{text_of(path), operation}][point.bytes] = point;
}

void PointStore::add(const std::vector<Series>& series) {
  for (const Series& entry : series)
    for (const Point& point : entry.points) points_[{text_of(entry.path), entry.operation}].emplace(point.bytes, point);
}

void PointStore::reject(const Path& path, Operation operation, Bytes bytes, const std::string& reason) {
  const auto [entry, fresh] =
      rejected_.try_emplace({text_of(path), operation}, Rejected{path, operation, bytes, reason});
  if (!fresh && bytes < entry->second.bytes) entry->second = {path, operation, bytes, reason};
}

const Rejected* PointStore::rejection(const Path& path, Operation operation, Bytes bytes) const {
  const auto entry = rejected_.find({text_of(path), operation});
  return entry != rejected_.end() && entry->second.bytes <= bytes ? &entry->second : nullptr;
}

// The smallest size at which it failed; above all sizes if it did not.
Bytes PointStore::failed_from(const Key& key) const {
  const auto entry = rejected_.find(key);
  return entry == rejected_.end() ? std::numeric_limits<Bytes>::max() : entry->second.bytes;
}

std::vector<Rejected> PointStore::rejected() const {
  std::vector<Rejected> all;
  for (const auto& [key, entry] : rejected_) all.push_back(entry);
  return all;
}

std::vector<Point> PointStore::points(const Path& path, Operation operation) const {
  const Key key{text_of(path), operation};
  std::vector<Point> found;
  const auto series = points_.find(key);
  if (series == points_.end()) return found;
  const auto end = series->second.lower_bound(failed_from(key));
  for (auto point = series->second.begin(); point != end; ++point) found.push_back(point->second);
  return found;
}

bool PointStore::empty(const Path& path) const {
  return std::none_of(points_.begin(), points_.end(),
                      [text = text_of(path)](const auto& entry) { return std::get<0>(entry.first) == text; });
}

}  // namespace waywiser
