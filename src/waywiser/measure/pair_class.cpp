#include "waywiser/measure/pair_class.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace waywiser {

Path for_pair(Path path, Place source, Place destination) {
  const Place old_source = path.source, old_destination = path.destination;
  path.source = source;
  path.destination = destination;
  // Between a host and a GPU the GPU does the work, whichever end it is.
  if (old_source.kind != source.kind && old_destination.kind != destination.kind && path.has("direction"))
    path.parameters["direction"] = path.parameter("direction") == "push" ? "pull" : "push";
  const bool first_is_free = old_source.is_gpu() && old_source != source && old_source != destination;
  for (auto& [name, value] : path.parameters) {
    if (name != "via" && !name.ends_with(".via")) continue;
    const Place through = parse_place(value);
    if (through == source || through == destination) value = text(first_is_free ? old_source : old_destination);
  }
  return path;
}

const PairClass* class_of(const std::vector<PairClass>& classes, const Path& path) {
  const std::pair pair(path.source, path.destination);
  const auto found = std::ranges::find_if(classes, [&](const PairClass& entry) {
    return entry.processes == path.processes && std::ranges::count(entry.members, pair) != 0;
  });
  return found == classes.end() ? nullptr : &*found;
}

std::vector<std::pair<Place, Place>> pairs_together(const PairClass& pair_class, std::pair<Place, Place> first,
                                                    std::size_t most) {
  std::vector<std::pair<Place, Place>> chosen{first}, rest = pair_class.members;
  if (const auto own = std::ranges::find(rest, first); own != rest.end()) rest.erase(own);
  std::map<Place, int> out{{first.first, 1}}, in{{first.second, 1}};
  const auto busy = [&](const std::pair<Place, Place>& pair) {
    const int sends = out[pair.first], receives = in[pair.second];
    return std::tuple(std::max(sends, receives), sends + receives);
  };
  while (!rest.empty() && chosen.size() < most) {
    const auto next = std::ranges::min_element(rest, {}, busy);
    ++out[next->first];
    ++in[next->second];
    chosen.push_back(*next);
    rest.erase(next);
  }
  return chosen;
}

}  // namespace waywiser
