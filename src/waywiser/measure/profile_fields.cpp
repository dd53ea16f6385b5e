#include "waywiser/measure/profile_fields.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::size_t most_pairs = 65'536;
constexpr std::size_t most_other_nodes = 256;

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

Json other_nodes_to_json(const std::vector<OtherNode>& nodes) {
  Json values = Json::array();
  for (const OtherNode& node : nodes) values.push_back({{"fingerprint", node.fingerprint}, {"machine", node.machine}});
  return values;
}

std::vector<OtherNode> other_nodes_field(const Json& object, std::string_view what) {
  std::vector<OtherNode> nodes;
  for (const Json& entry : list_field(object, "other_nodes", what, most_other_nodes))
    nodes.push_back({text_field(entry, "fingerprint", what), text_field(entry, "machine", what)});
  return nodes;
}

void give_type(Place& place, NodeType type) {
  if (place.node == some_other_node) place.node = type;
}

void give_type(Path& path, NodeType type) {
  give_type(path.source, type);
  give_type(path.destination, type);
}

}  // namespace waywiser
