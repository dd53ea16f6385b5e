#include "waywiser/table/path_counts.hpp"

#include <algorithm>

namespace waywiser {

void PathCounts::add(std::string_view way, Bytes bytes) {
  auto found = std::ranges::find(ways, way, &WayCounts::way);
  if (found == ways.end()) found = ways.insert(found, {std::string(way)});
  ++found->pieces, found->bytes += bytes;
}

}  // namespace waywiser
