#include "waywiser/table/path_counts.hpp"

#include <algorithm>

namespace waywiser {

void add_piece(PathCounts& counts, std::string_view way, Bytes bytes) {
  auto found = std::ranges::find(counts.ways, way, &WayCounts::way);
  if (found == counts.ways.end()) found = counts.ways.insert(found, {std::string(way)});
  ++found->pieces, found->bytes += bytes;
}

}  // namespace waywiser
