#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace waywiser {

enum class PlaceKind { host, gpu };

// The type of a node: its fingerprint as a number.
using NodeType = std::uint64_t;
inline constexpr NodeType this_node = 0;
inline constexpr NodeType some_other_node = 1;  // of an unspecified type

// A memory: of a NUMA node ("host0") or of a GPU ("gpu3"), on this machine or on a machine at the other end of a
// network, with its type ("b7ef00aa67f28849:gpu0") or without ("other:host0").
struct Place {
  PlaceKind kind = PlaceKind::host;
  int index = 0;
  NodeType node = this_node;

  bool is_gpu() const noexcept { return kind == PlaceKind::gpu; }
  bool other_machine() const noexcept { return node != this_node; }
  auto operator<=>(const Place&) const = default;
};

[[gnu::visibility("default")]] std::string text(Place place);
// Throws invalid_input: "'gpux' is not a place: write host0 or gpu0".
[[gnu::visibility("default")]] Place parse_place(std::string_view text);

constexpr Place host(int node) { return {PlaceKind::host, node}; }
constexpr Place gpu(int index) { return {PlaceKind::gpu, index}; }
constexpr Place on_node(NodeType node, Place place) { return {place.kind, place.index, node}; }
// The same place, as named by the machine at the other end.
constexpr Place seen_from_other(Place place) {
  return on_node(place.node == this_node ? some_other_node : this_node, place);
}
// 16 hexadecimal digits -> the number; some_other_node for any other text.
[[gnu::visibility("default")]] NodeType node_type(std::string_view fingerprint) noexcept;
// The fingerprint; "other" for some_other_node.
[[gnu::visibility("default")]] std::string text_of_node(NodeType node);

}  // namespace waywiser
