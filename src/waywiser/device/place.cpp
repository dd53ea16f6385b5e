#include "waywiser/device/place.hpp"

#include <charconv>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::string_view of_the_other = "other:";

Place parse_here(std::string_view text) {
  const bool is_gpu = text.starts_with("gpu");
  const std::string_view digits = text.substr(std::min<std::size_t>(text.size(), is_gpu ? 3 : 4));
  int index = -1;
  const auto [rest, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool whole = problem == std::errc{} && rest == digits.data() + digits.size();
  if ((!is_gpu && !text.starts_with("host")) || !whole || index < 0 || index > 4095)
    throw Error(ErrorKind::invalid_input,
                "'" + std::string(text.substr(0, 40)) + "' is not a place: write host0 or gpu0");
  return {is_gpu ? PlaceKind::gpu : PlaceKind::host, index};
}

}  // namespace

std::string text(Place place) {
  return std::string(place.other_machine ? of_the_other : "") + (place.is_gpu() ? "gpu" : "host") +
         std::to_string(place.index);
}

Place parse_place(std::string_view text) {
  if (text.starts_with(of_the_other)) return seen_from_other(parse_here(text.substr(of_the_other.size())));
  return parse_here(text);
}

}  // namespace waywiser
