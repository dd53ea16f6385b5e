#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "waywiser/measure/profile.hpp"

namespace waywiser {

// The measured points by path, operation and size, and the size from which a path failed. Points at or above a failure
// are hidden.
class PointStore {
 public:
  const Point* find(const Path& path, Operation operation, Bytes bytes) const;
  void add(const Path& path, Operation operation, const Point& point);
  void add(const std::vector<Series>& series);  // what is there already stays

  // From this size on the path is not used for the operation.
  void reject(const Path& path, Operation operation, Bytes bytes, const std::string& reason);
  // The failure that covers this size, else nullptr.
  const Rejected* rejection(const Path& path, Operation operation, Bytes bytes) const;
  std::vector<Rejected> rejected() const;

  // The surviving points of one path and operation, ascending.
  std::vector<Point> points(const Path& path, Operation operation) const;
  bool empty(const Path& path) const;

 private:
  using Key = std::tuple<std::string, Operation>;
  static std::string text_of(const Path& path) { return pair_text(path) + " " + label(path); }
  Bytes failed_from(const Key& key) const;

  std::map<Key, std::map<Bytes, Point>> points_;
  std::map<Key, Rejected> rejected_;  // the smallest size for each
};

}  // namespace waywiser
