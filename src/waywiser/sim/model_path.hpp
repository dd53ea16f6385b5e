#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/path/path.hpp"

namespace waywiser::sim {

// A path as a model reads it: which parameters were read is known afterwards. Values throw as those of Path do.
class ModelPath {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a transfer is written with a Path.
  ModelPath(const Path& path) : path_(path) {}

  const Path& whole() const noexcept { return path_; }
  bool has(std::string_view name) const { return path_.has(name); }
  std::string_view parameter(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
  Bytes bytes(std::string_view name, Bytes least, Bytes most) const;
  // Throws invalid_input for any other value.
  std::string_view one_of(std::string_view name, std::initializer_list<std::string_view> values) const;
  // False if the parameter is missing or "off", true if it is "on".
  bool on(std::string_view name) const { return has(name) && one_of(name, {"off", "on"}) == "on"; }
  // Another model reads the parameters whose names begin so.
  void hand_on(std::string_view prefix) const;

  void forget_reads() const { read_.clear(); }
  std::vector<std::string> unread() const;

 private:
  const Path& path_;
  mutable std::set<std::string, std::less<>> read_;
};

}  // namespace waywiser::sim
