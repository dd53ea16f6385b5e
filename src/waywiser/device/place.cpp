#include "waywiser/device/place.hpp"

#include <charconv>

#include "waywiser/base/error.hpp"

namespace waywiser {

std::string text(Place place) { return (place.is_gpu() ? "gpu" : "host") + std::to_string(place.index); }

Place parse_place(std::string_view text) {
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

}  // namespace waywiser
