#include "waywiser/offload/data_road.hpp"

#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {

std::string_view name(DataRoad road) noexcept {
  switch (road) {
    case DataRoad::direct: return "direct";
    case DataRoad::pageable: return "pageable";
    case DataRoad::pinned: return "pinned";
    case DataRoad::pipelined: break;
  }
  return "pipelined";
}

DataRoad parse_data_road(std::string_view text) {
  std::string all;
  for (const DataRoad road : data_roads) {
    if (name(road) == text) return road;
    all += (all.empty() ? "" : ", ") + std::string(name(road));
  }
  throw Error(ErrorKind::invalid_input, quoted(text, 20) + " is no road of arrays; there are " + all);
}

}  // namespace waywiser
