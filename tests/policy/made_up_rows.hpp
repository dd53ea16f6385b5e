#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/policy/plan.hpp"

namespace waywiser::made_up {

// Messages of the first path's pair, and of `more` pairs; the first path is the one to take.
inline PlanRow message_row(const std::vector<Path>& paths, Bytes from, Bytes to,
                           Operation operation = Operation::latency,
                           const std::vector<std::pair<Place, Place>>& more = {}) {
  PlanRow row{{.operation = std::string(name(operation)), .processes = paths.front().processes}, from, to};
  row.key.pairs = {{paths.front().source, paths.front().destination}};
  row.key.pairs.insert(row.key.pairs.end(), more.begin(), more.end());
  for (const Path& path : paths) row.ways.push_back({{path.mechanism, path.parameters}});
  return row;
}

// What `ranks` ranks do together.
inline PlanRow group_row(std::string operation, std::string memory, int ranks, Bytes from, Bytes to,
                         const std::string& way) {
  PlanRow row{{.operation = std::move(operation), .memory = std::move(memory), .ranks = ranks}, from, to};
  row.ways = {{parse_way(way)}};
  return row;
}

}  // namespace waywiser::made_up
