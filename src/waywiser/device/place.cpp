#include "waywiser/device/place.hpp"

#include <array>
#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view the_other = "other";
constexpr std::size_t digits_of_a_type = 16;

Place parse_here(std::string_view text) {
  const bool is_gpu = text.starts_with("gpu");
  const std::string_view digits = text.substr(std::min<std::size_t>(text.size(), is_gpu ? 3 : 4));
  int index = -1;
  const auto [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = problem == std::errc{} && rest == digits.data() + digits.size();
  if ((!is_gpu && !text.starts_with("host")) || !whole || index < 0 || index > 4095)
    throw Error(ErrorKind::invalid_input, quoted(text, 40) + " is not a place: write host0 or gpu0");
  return {is_gpu ? PlaceKind::gpu : PlaceKind::host, index};
}

}  // namespace

std::string text(Place place) {
  const std::string node = place.other_machine() ? text_of_node(place.node) + ":" : "";
  return node + (place.is_gpu() ? "gpu" : "host") + std::to_string(place.index);
}

Place parse_place(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return parse_here(text);
  const std::string_view name = text.substr(0, colon);
  const NodeType node = node_type(name);
  if (node == some_other_node && name != the_other) return parse_here(text);  // its error says what is wrong
  return on_node(node, parse_here(text.substr(colon + 1)));
}

NodeType node_type(std::string_view fingerprint) noexcept {
  NodeType node = some_other_node;
  if (fingerprint.size() != digits_of_a_type) return some_other_node;
  const auto [rest, problem] =
      std::from_chars(fingerprint.data(), fingerprint.data() + fingerprint.size(), node, /*base=*/16);
  const bool whole = problem == std::errc{} && rest == fingerprint.data() + fingerprint.size();
  return whole && node != this_node ? node : some_other_node;
}

std::string text_of_node(NodeType node) {
  if (node == some_other_node) return std::string(the_other);
  std::array<char, digits_of_a_type + 1> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, node);
  return text.data();
}

}  // namespace waywiser
