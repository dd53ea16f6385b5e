#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "waywiser/base/units.hpp"

extern template class nlohmann::basic_json<nlohmann::ordered_map>;  // compiled once, in json.cpp

namespace waywiser {

// Keeps the written order of keys, so that files read well and can be compared line by line.
using Json = nlohmann::ordered_json;

// `what` names the text in messages ("profile.json"). Throws invalid_input with line and column; rejects texts over 256
// MiB and nesting deeper than 64.
Json parse_json(std::string_view text, std::string_view what);
Json read_json(const std::filesystem::path& file);
std::string read_text(const std::filesystem::path& file, Bytes largest);
// Atomic: writes beside `file`, syncs, then renames. After a failure (full disk, no permission) the old file remains.
void write_text(const std::filesystem::path& file, std::string_view text);
void write_json(const std::filesystem::path& file, const Json& value);

// Throws invalid_input unless value is an object whose "schema" is `schema` and whose "version" is `version`.
void check_schema(const Json& value, std::string_view schema, int version, std::string_view what);
// The same for a range of versions; returns the version found.
int check_schema(const Json& value, std::string_view schema, int oldest, int newest, std::string_view what);

// Checked access to a value from outside: a missing key or another type is one clear line that names `what` and key.
const Json& require(const Json& object, std::string_view key, std::string_view what);
std::string require_string(const Json& object, std::string_view key, std::string_view what);
double require_number(const Json& object, std::string_view key, std::string_view what);  // finite
std::int64_t require_integer(const Json& object, std::string_view key, std::string_view what, std::int64_t least,
                             std::int64_t most);
const Json& require_array(const Json& object, std::string_view key, std::string_view what);

}  // namespace waywiser
