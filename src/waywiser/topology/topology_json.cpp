#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/topology/rates.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {
namespace {

using Texts = std::map<std::string, std::string>;

std::string text_or_empty(const Json& object, std::string_view key, std::string_view what) {
  return object.contains(key) ? require_string(object, key, what) : std::string();
}

std::int64_t integer_or(const Json& object, std::string_view key, std::string_view what, std::int64_t fallback,
                        std::int64_t least, std::int64_t most) {
  return object.contains(key) ? require_integer(object, key, what, least, most) : fallback;
}

int small_or(const Json& object, std::string_view key, std::string_view what, int fallback) {
  return static_cast<int>(integer_or(object, key, what, fallback, -1, 1 << 20));
}

std::optional<BytesPerSecond> rate_or_nothing(const Json& object, std::string_view key, std::string_view what) {
  if (!object.contains(key) || object.at(std::string(key)).is_null()) return std::nullopt;
  return require_number(object, key, what);
}

Texts texts(const Json& object, std::string_view key, std::string_view what) {
  Texts found;
  if (!object.contains(key)) return found;
  const Json& values = require(object, key, what);
  if (!values.is_object() || values.size() > most_devices)
    refuse_input(what, "'" + std::string(key) + "' must be an object");
  for (const auto& [name, value] : values.items()) {
    if (!value.is_string())
      refuse_input(what, "'" + std::string(key) + "." + name.substr(0, 64) + "' must be a string");
    found[name] = value.get<std::string>();
  }
  return found;
}

Device device_from_json(const Json& value, std::string_view what) {
  Device device;
  device.id = require_string(value, "id", what);
  device.kind = require_string(value, "kind", what);
  device.name = text_or_empty(value, "name", what);
  device.bus_id = text_or_empty(value, "bus_id", what);
  device.numa = small_or(value, "numa", what, -1);
  device.cores = text_or_empty(value, "cores", what);
  device.memory_bytes = static_cast<Bytes>(integer_or(value, "memory_bytes", what, 0, 0, std::int64_t{1} << 60));
  device.attributes = texts(value, "attributes", what);
  return device;
}

Link link_from_json(const Json& value, std::string_view what) {
  Link link;
  link.a = require_string(value, "a", what);
  link.b = require_string(value, "b", what);
  link.kind = require_string(value, "kind", what);
  link.generation = small_or(value, "generation", what, 0);
  link.width = small_or(value, "width", what, 0);
  link.max_generation = small_or(value, "max_generation", what, link.generation);
  link.max_width = small_or(value, "max_width", what, link.width);
  link.count = small_or(value, "count", what, 1);
  link.nominal = rate_or_nothing(value, "nominal", what);
  link.achievable = rate_or_nothing(value, "achievable", what);
  link.source = text_or_empty(value, "source", what);
  return link;
}

Json optional_rate(const std::optional<BytesPerSecond>& rate) { return rate ? Json(*rate) : Json(nullptr); }

Json device_to_json(const Device& device) {
  Json value{{"id", device.id}, {"kind", device.kind}, {"name", device.name}};
  if (!device.bus_id.empty()) value["bus_id"] = device.bus_id;
  value["numa"] = device.numa;
  if (!device.cores.empty()) value["cores"] = device.cores;
  if (device.memory_bytes != 0) value["memory_bytes"] = device.memory_bytes;
  if (!device.attributes.empty()) value["attributes"] = device.attributes;
  return value;
}

Json link_to_json(const Link& link) {
  Json value{{"a", link.a}, {"b", link.b}, {"kind", link.kind}};
  if (link.max_generation != 0) {
    value["generation"] = link.generation;
    value["max_generation"] = link.max_generation;
  }
  if (link.max_width != 0) {
    value["width"] = link.width;
    value["max_width"] = link.max_width;
  }
  value["count"] = link.count;
  value["nominal"] = optional_rate(link.nominal);
  value["achievable"] = optional_rate(link.achievable);
  value["source"] = link.source;
  return value;
}

void read_notes(Topology& topology, const Json& value, std::string_view what) {
  if (!value.contains("notes")) return;
  const Json& notes = require_array(value, "notes", what);
  if (notes.size() > most_devices) refuse_input(what, "too many notes");
  for (const Json& note : notes) {
    if (!note.is_string()) refuse_input(what, "'notes' must be a list of strings");
    topology.notes.push_back(note.get<std::string>());
  }
}

}  // namespace

Json to_json(const Topology& topology) {
  Json value{{"schema", topology_schema}, {"version", topology_version}, {"fingerprint", fingerprint(topology)},
             {"name", topology.name},     {"kind", topology.kind},       {"source", topology.source},
             {"notes", Json::array()},    {"software", Json::object()},  {"devices", Json::array()},
             {"links", Json::array()}};
  for (const std::string& note : topology.notes) value["notes"].push_back(note);
  for (const auto& [name, version] : topology.software) value["software"][name] = version;
  for (const Device& device : topology.devices) value["devices"].push_back(device_to_json(device));
  for (const Link& link : topology.links) value["links"].push_back(link_to_json(link));
  return value;
}

Topology topology_from_json(const Json& value, std::string_view what) {
  check_schema(value, topology_schema, topology_version, what);
  Topology topology;
  topology.name = require_string(value, "name", what);
  topology.kind = require_string(value, "kind", what);
  const std::set<std::string_view> kinds{"published", "recorded", "discovered", "synthetic"};
  if (!kinds.contains(topology.kind)) refuse_input(what, "'kind' must be published, recorded, discovered or synthetic");
  topology.source = text_or_empty(value, "source", what);
  read_notes(topology, value, what);
  topology.software = texts(value, "software", what);
  const Json& devices = require_array(value, "devices", what);
  const Json& links = require_array(value, "links", what);
  if (devices.size() > most_devices || links.size() > most_links)
    refuse_input(what,
                 "more than " + std::to_string(most_devices) + " devices or " + std::to_string(most_links) + " links");
  for (const Json& device : devices) topology.devices.push_back(device_from_json(device, what));
  for (const Json& link : links) topology.links.push_back(link_from_json(link, what));
  validate(topology, what);
  fill_rates(topology);
  return topology;
}

}  // namespace waywiser
