#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/measure/profile.hpp"

namespace waywiser {

// For a class of pairs, one operation and a range of sizes: the path to take, and why.
struct PlanRow {
  std::vector<std::pair<Place, Place>> pairs;  // the first is the measured one; `path` is written for it
  int processes = 1;
  Operation operation = Operation::latency;
  Bytes from_bytes = 0, to_bytes = 0;  // inclusive
  Path path;
  std::vector<std::pair<Bytes, Seconds>> expected;  // the measured points in the range
  std::optional<Path> runner_up;
  double runner_up_ratio = 0;  // its time / the chosen path's, in the middle of the range
  std::string why;
};

struct Plan {
  std::string fingerprint;
  std::string machine;
  std::string backend;
  bool simulated = false;
  std::vector<PlanRow> rows;
};

Json to_json(const Plan& plan);
Plan plan_from_json(const Json& value, std::string_view what);

}  // namespace waywiser
