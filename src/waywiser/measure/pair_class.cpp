#include "waywiser/measure/pair_class.hpp"

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

}  // namespace waywiser
