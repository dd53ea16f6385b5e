#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "waywiser/base/units.hpp"

namespace waywiser {

using Parameters = std::map<std::string, std::string>;

// One of several ways to do something, as plans, measurements and users name it: "LL128(blocks=16)". Parameters are
// text, by name; sizes as in parse_bytes.
struct Way {
  std::string name;
  Parameters parameters = {};

  bool operator==(const Way&) const = default;

  bool has_only(std::initializer_list<std::string_view> names) const;
  // A parameter that is there is read. False: it is not a whole number from 1 to `most`.
  bool read(std::string_view key, unsigned most, unsigned& into) const;
};

// "name(key=value,...)", the keys in alphabetical order; without parameters the name alone.
std::string text(std::string_view name, const Parameters& parameters);
std::string text(const Way& way);
// Reads what text() writes, with the keys in any order. Throws invalid_input.
Way parse_way(std::string_view text);

}  // namespace waywiser
