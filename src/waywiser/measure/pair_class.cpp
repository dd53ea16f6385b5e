#include "waywiser/measure/pair_class.hpp"

namespace waywiser {

Path for_pair(Path path, Place source, Place destination) {
  const Place old_source = path.source, old_destination = path.destination;
  path.source = source;
  path.destination = destination;
  const bool first_is_free = old_source.is_gpu() && old_source != source && old_source != destination;
  for (auto& [name, value] : path.parameters) {
    if (name != "via" && !name.ends_with(".via")) continue;
    const Place through = parse_place(value);
    if (through == source || through == destination) value = text(first_is_free ? old_source : old_destination);
  }
  return path;
}

}  // namespace waywiser
