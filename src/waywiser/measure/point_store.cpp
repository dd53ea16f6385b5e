#include "waywiser/measure/point_store.hpp"

#include <algorithm>

namespace waywiser {

const Point* PointStore::find(const Path& path, Operation operation, Bytes bytes) const {
  if (rejection(path, operation, bytes) != nullptr) return nullptr;
  const auto series = points_.find({text_of(path), operation});
  if (series == points_.end()) return nullptr;
  const auto point = series->second.find(bytes);
  return point == series->second.end() ? nullptr : &point->second;
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

std::vector<Rejected> PointStore::rejected() const {
  std::vector<Rejected> all;
  for (const auto& [key, entry] : rejected_) all.push_back(entry);
  return all;
}

std::vector<Point> PointStore::points(const Path& path, Operation operation) const {
  std::vector<Point> found;
  const auto series = points_.find({text_of(path), operation});
  if (series == points_.end()) return found;
  for (const auto& [bytes, point] : series->second)
    if (rejection(path, operation, bytes) == nullptr) found.push_back(point);
  return found;
}

bool PointStore::empty(const Path& path) const {
  return std::none_of(points_.begin(), points_.end(),
                      [text = text_of(path)](const auto& entry) { return std::get<0>(entry.first) == text; });
}

}  // namespace waywiser
