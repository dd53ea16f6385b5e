#include "waywiser/path/path.hpp"

#include <charconv>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t longest_text = 64;
constexpr std::size_t longest_device = 32;                               // UCT_DEVICE_NAME_MAX
constexpr std::size_t longest_value = 8 * (2 * longest_device + 1) + 7;  // "a/b+c/d+...", eight rails

[[noreturn]] void refuse(const Path& path, std::string_view name, const std::string& why) {
  throw Error(ErrorKind::invalid_input, label(path) + ": parameter '" + std::string(name) + "' " + why);
}

std::string short_string(const Json& object, std::string_view key, std::size_t most, std::string_view what) {
  std::string value = require_string(object, key, what);
  if (value.empty() || value.size() > most)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": '" + std::string(key) + "' must have 1 to " +
                                              std::to_string(most) + " characters");
  return value;
}

}  // namespace

bool Path::has(std::string_view name) const { return parameters.contains(std::string(name)); }

std::string_view Path::parameter(std::string_view name) const {
  const auto found = parameters.find(std::string(name));
  if (found == parameters.end()) refuse(*this, name, "is missing");
  return found->second;
}

std::int64_t Path::integer(std::string_view name, std::int64_t least, std::int64_t most) const {
  const std::string_view value = parameter(name);
  std::int64_t number = 0;
  const auto [rest, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || rest != value.data() + value.size() || number < least || number > most)
    refuse(*this, name, "must be a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return number;
}

Bytes Path::bytes(std::string_view name, Bytes least, Bytes most) const {
  const Bytes number = parse_bytes(parameter(name));
  if (number < least || number > most)
    refuse(*this, name, "must be a size from " + format_bytes(least) + " to " + format_bytes(most));
  return number;
}

std::string label(const Path& path) { return text(path.mechanism, path.parameters); }

std::string pair_text(const Path& path) {
  return text(path.source) + (path.processes == 1 ? ">" : ">>") + text(path.destination);
}

Json to_json(const Path& path) {
  Json parameters = Json::object();
  for (const auto& [name, value] : path.parameters) parameters[name] = value;
  return {{"mechanism", path.mechanism},
          {"source", text(path.source)},
          {"destination", text(path.destination)},
          {"processes", path.processes},
          {"parameters", parameters}};
}

Path path_from_json(const Json& value, std::string_view what) {
  Path path;
  path.mechanism = short_string(value, "mechanism", longest_text, what);
  path.source = parse_place(require_string(value, "source", what));
  path.destination = parse_place(require_string(value, "destination", what));
  path.processes = static_cast<int>(require_integer(value, "processes", what, 1, 2));
  const Json& parameters = require(value, "parameters", what);
  if (!parameters.is_object() || parameters.size() > 32)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'parameters' must be an object of at most 32 entries");
  for (const auto& [name, unused] : parameters.items())
    path.parameters[name] = short_string(parameters, name, longest_value, what);
  return path;
}

}  // namespace waywiser
