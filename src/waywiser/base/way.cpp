#include "waywiser/base/way.hpp"

#include <algorithm>
#include <charconv>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw Error(ErrorKind::invalid_input,
              quoted(text, 80) + " is not a way: it has the form NAME or NAME(KEY=VALUE,...)");
}

}  // namespace

bool Way::has_only(std::initializer_list<std::string_view> names) const {
  return std::ranges::all_of(parameters, [&](const auto& each) { return std::ranges::count(names, each.first) == 1; });
}

bool Way::read(std::string_view key, unsigned most, unsigned& into) const {
  const auto found = parameters.find(std::string(key));
  if (found == parameters.end()) return true;
  const std::string& value = found->second;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), into);
  return problem == std::errc() && end == value.data() + value.size() && into != 0 && into <= most;
}

std::string text(std::string_view name, const Parameters& parameters) {
  std::string text(name);
  for (auto entry = parameters.begin(); entry != parameters.end(); ++entry)
    text += (entry == parameters.begin() ? "(" : ",") + entry->first + "=" + entry->second;
  return parameters.empty() ? text : text + ")";
}

std::string text(const Way& way) { return text(way.name, way.parameters); }

Way parse_way(std::string_view text) {
  const std::size_t open = text.find('(');
  Way way{std::string(text.substr(0, open))};
  if (way.name.empty() || way.name.find_first_of("),=") != std::string::npos) refuse(text);
  if (open == std::string_view::npos) return way;
  std::string_view rest = text.substr(open + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find_first_of(",)"), equals = rest.find('=');
    if (end == std::string_view::npos || equals >= end || equals == 0 || equals + 1 == end) break;
    const bool is_new =
        way.parameters.emplace(rest.substr(0, equals), rest.substr(equals + 1, end - equals - 1)).second;
    if (!is_new) break;
    if (rest[end] == ')') {
      if (end + 1 != rest.size()) break;
      return way;
    }
    rest.remove_prefix(end + 1);
  }
  refuse(text);
}

}  // namespace waywiser
