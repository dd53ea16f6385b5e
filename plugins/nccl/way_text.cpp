#include "way_text.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace waywiser_nccl {
namespace {

// By their numbers in NCCL.
constexpr std::string_view algorithm_names[] = {"Tree",     "Ring", "CollNetDirect", "CollNetChain", "NVLS",
                                                "NVLSTree", "PAT"};
constexpr std::string_view protocol_names[] = {"LL", "LL128", "Simple"};
constexpr int most_channels = 64;
constexpr std::size_t largest_chunk = std::size_t{1} << 30;

template <std::size_t N>
int number_of(std::string_view name, const std::string_view (&names)[N]) {
  const auto* const found = std::ranges::find(names, name);
  return found == std::end(names) ? -1 : static_cast<int>(found - names);
}

template <typename Number>
bool read_number(std::string_view text, Number most, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size() && into >= 1 && into <= most;
}

bool read_parameter(std::string_view key, std::string_view value, Way& way) {
  if (key == "channels") return read_number(value, most_channels, way.channels);
  if (key == "chunk") return read_number(value, largest_chunk, way.chunk);
  way.protocol = key == "protocol" ? number_of(value, protocol_names) : -1;
  return way.protocol >= 0;
}

}  // namespace

std::optional<Way> read_way(std::string_view text) {
  Way way;
  if (text == "default") return way;
  const std::size_t open = text.find('(');
  way.algorithm = number_of(text.substr(0, open), algorithm_names);
  if (way.algorithm < 0 || open == std::string_view::npos || !text.ends_with(')')) return std::nullopt;
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equal = part.find('=');
    if (equal == std::string_view::npos) return std::nullopt;
    if (!read_parameter(part.substr(0, equal), part.substr(equal + 1), way)) return std::nullopt;
  }
  return way.protocol < 0 ? std::nullopt : std::optional(way);
}

}  // namespace waywiser_nccl
