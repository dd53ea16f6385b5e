#include "waywiser/group/array_places.hpp"

#include <algorithm>

#include "waywiser/collective/group_core.hpp"

namespace waywiser {

Place gpu_of(std::span<const Elements> arrays) {
  const auto found = std::ranges::find_if(
      arrays, [](const Elements& each) { return each.region.bytes != 0 && each.region.place.is_gpu(); });
  return found == arrays.end() ? Place{} : found->region.place;
}

std::vector<ArrayPlaces> places_of_all(GroupCore& core, std::span<const Elements> arrays) {
  ArrayPlaces mine;
  for (const Elements& each : arrays)
    if (each.region.bytes != 0) (each.region.place.is_gpu() ? mine.gpu : mine.host) = true;
  std::vector<ArrayPlaces> all(static_cast<std::size_t>(core.size()));
  core.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

std::string why_no_gpus(const std::vector<ArrayPlaces>& places) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].host) return "rank " + std::to_string(rank) + " has arrays of the host";
    if (!places[rank].gpu) return "rank " + std::to_string(rank) + " has no array of a GPU";
  }
  return {};
}

}  // namespace waywiser
