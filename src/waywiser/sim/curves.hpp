#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/measure/profile.hpp"

namespace waywiser::sim {

// The remaining error of the models, found by calibration: for a path and an operation the ratio measured / predicted
// over size; its logarithm is linear in log(size) between its points, constant beyond them.
class Curves {
 public:
  double ratio(const Path& path, Operation operation, Bytes bytes) const;
  bool empty() const noexcept { return curves_.empty(); }

 private:
  friend Curves curves_from_json(const Json& value, std::string_view what);
  using Points = std::vector<std::pair<double, double>>;  // log(size), log(ratio)
  std::map<std::pair<std::string, Operation>, Points> curves_;
};

// A list of {"path": "gpu0>gpu1 copy_engine", "operation": "latency", "ratios": [[bytes, ratio], ..]}, sizes ascending.
// Throws invalid_input.
Curves curves_from_json(const Json& value, std::string_view what);

}  // namespace waywiser::sim
