#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace waywiser {

enum class PlaceKind { host, gpu };

// Where bytes live: the memory of a NUMA node ("host0") or of a GPU ("gpu3"), here or on the machine at the other end
// of a network ("other:host0").
struct Place {
  PlaceKind kind = PlaceKind::host;
  int index = 0;
  bool other_machine = false;

  bool is_gpu() const noexcept { return kind == PlaceKind::gpu; }
  auto operator<=>(const Place&) const = default;
};

std::string text(Place place);
// Throws invalid_input: "'gpux' is not a place: write host0 or gpu0".
Place parse_place(std::string_view text);

constexpr Place host(int node) { return {PlaceKind::host, node}; }
constexpr Place gpu(int index) { return {PlaceKind::gpu, index}; }
// The same place as the machine at the other end names it.
constexpr Place seen_from_other(Place place) { return {place.kind, place.index, !place.other_machine}; }

}  // namespace waywiser
