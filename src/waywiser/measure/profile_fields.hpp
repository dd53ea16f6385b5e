#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/measure/profile.hpp"

namespace waywiser {

// Checked fields that profiles and plans share. All throw invalid_input with one line that names `what` and `key`.
inline constexpr Bytes largest_size = Bytes{1} << 62;

Bytes bytes_field(const Json& object, std::string_view key, std::string_view what);
double positive_field(const Json& object, std::string_view key, std::string_view what);
double not_negative_field(const Json& object, std::string_view key, std::string_view what);
bool bool_field(const Json& object, std::string_view key, std::string_view what);
std::string text_field(const Json& object, std::string_view key, std::string_view what);  // at most 4096 characters
const Json& list_field(const Json& object, std::string_view key, std::string_view what, std::size_t most);

Json to_json(const Point& point);

using PlacePairs = std::vector<std::pair<Place, Place>>;
Json pairs_to_json(const PlacePairs& pairs);
// At least one pair.
PlacePairs pairs_field(const Json& object, std::string_view key, std::string_view what);

Json other_nodes_to_json(const std::vector<OtherNode>& nodes);
std::vector<OtherNode> other_nodes_field(const Json& object, std::string_view what);
// "other:gpu0" of an older file becomes that of `type`.
void give_type(Place& place, NodeType type);
void give_type(Path& path, NodeType type);

}  // namespace waywiser
