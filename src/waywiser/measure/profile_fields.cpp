#include "waywiser/measure/profile_fields.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::size_t most_pairs = 65'536;

[[noreturn]] void refuse(std::string_view what, std::string_view key, const std::string& why) {
  throw Error(ErrorKind::invalid_input, std::string(what) + ": '" + std::string(key) + "' " + why);
}

}  // namespace

Bytes bytes_field(const Json& object, std::string_view key, std::string_view what) {
  return static_cast<Bytes>(require_integer(object, key, what, 0, static_cast<std::int64_t>(largest_size)));
}

double positive_field(const Json& object, std::string_view key, std::string_view what) {
  const double value = require_number(object, key, what);
  if (value <= 0) refuse(what, key, "must be above 0");
  return value;
}

double not_negative_field(const Json& object, std::string_view key, std::string_view what) {
  const double value = require_number(object, key, what);
  if (value < 0) refuse(what, key, "must not be negative");
  return value;
}

bool bool_field(const Json& object, std::string_view key, std::string_view what) {
  const Json& value = require(object, key, what);
  if (!value.is_boolean()) refuse(what, key, "must be true or false");
  return value.get<bool>();
}

std::string text_field(const Json& object, std::string_view key, std::string_view what) {
  std::string value = require_string(object, key, what);
  if (value.size() > longest_text) refuse(what, key, "is longer than " + std::to_string(longest_text) + " characters");
  return value;
}

const Json& list_field(const Json& object, std::string_view key, std::string_view what, std::size_t most) {
  const Json& value = require_array(object, key, what);
  if (value.size() > most) refuse(what, key, "has more than " + std::to_string(most) + " entries");
  return value;
}

Json pairs_to_json(const PlacePairs& pairs) {
  Json values = Json::array();
  for (const auto& [source, destination] : pairs) values.push_back({text(source), text(destination)});
  return values;
}

PlacePairs pairs_field(const Json& object, std::string_view key, std::string_view what) {
  PlacePairs pairs;
  for (const Json& entry : list_field(object, key, what, most_pairs)) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_string())
      refuse(what, key, "must be a list of [source, destination]");
    pairs.emplace_back(parse_place(entry[0].get<std::string>()), parse_place(entry[1].get<std::string>()));
  }
  if (pairs.empty()) refuse(what, key, "must not be empty");
  return pairs;
}

}  // namespace waywiser
