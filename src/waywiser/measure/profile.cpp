#include "waywiser/measure/profile.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/measure/old_names.hpp"
#include "waywiser/measure/profile_fields.hpp"

namespace waywiser {

Json to_json(const Point& point) {
  Json value{{"bytes", point.bytes},      {"seconds", point.seconds},
             {"low", point.low},          {"high", point.high},
             {"p50", point.p50},          {"p99", point.p99},
             {"samples", point.samples},  {"cpu_seconds", point.cpu_seconds},
             {"verified", point.verified}};
  if (point.disturbed != 0) value["disturbed"] = point.disturbed;
  return value;
}

namespace {

constexpr std::string_view schema = "waywiser.profile";
constexpr int oldest = 1, version = 2;
constexpr std::size_t most_entries = 200'000;
constexpr std::size_t most_points = 1024;

Point point_from_json(const Json& value, std::string_view what) {
  Point point;
  point.bytes = bytes_field(value, "bytes", what);
  point.seconds = positive_field(value, "seconds", what);
  point.low = positive_field(value, "low", what);
  point.high = positive_field(value, "high", what);
  point.p50 = positive_field(value, "p50", what);
  point.p99 = positive_field(value, "p99", what);
  point.samples = static_cast<int>(require_integer(value, "samples", what, 1, 1 << 30));
  point.cpu_seconds = not_negative_field(value, "cpu_seconds", what);
  point.verified = bool_field(value, "verified", what);
  if (value.contains("disturbed"))
    point.disturbed = static_cast<int>(require_integer(value, "disturbed", what, 0, 1 << 30));
  if (point.low > point.seconds || point.seconds > point.high)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'seconds' must lie between 'low' and 'high'");
  return point;
}

Json to_json(const Series& series) {
  Json points = Json::array();
  for (const Point& point : series.points) points.push_back(to_json(point));
  Json value{{"path", waywiser::to_json(series.path)},
             {"operation", name(series.operation)},
             {"points", points},
             {"limit", series.limit},
             {"limit_source", series.limit_source}};
  if (series.pairs != 0) value["pairs"] = series.pairs;
  return value;
}

std::vector<Point> points_from_json(const Json& value, std::string_view what) {
  std::vector<Point> points;
  for (const Json& entry : list_field(value, "points", what, most_points)) {
    const Point point = point_from_json(entry, what);
    if (!points.empty() && point.bytes <= points.back().bytes)
      throw Error(ErrorKind::invalid_input, std::string(what) + ": 'points' must be in ascending order of 'bytes'");
    points.push_back(point);
  }
  return points;
}

Json to_json(const CollectiveSeries& series) {
  Json points = Json::array();
  for (const Point& point : series.points) points.push_back(to_json(point));
  Json value{{"operation", series.operation},
             {"memory", series.memory},
             {"ranks", series.ranks},
             {"way", series.way},
             {"points", points}};
  if (!series.partner.empty()) value["partner"] = series.partner;
  return value;
}

CollectiveSeries collective_from_json(const Json& value, std::string_view what) {
  CollectiveSeries series{text_field(value, "operation", what), text_field(value, "memory", what),
                          static_cast<int>(require_integer(value, "ranks", what, 2, 1 << 20)),
                          algorithm_of_today(text_field(value, "way", what)), points_from_json(value, what)};
  if (value.contains("partner")) series.partner = text_field(value, "partner", what);
  return series;
}

Series series_from_json(const Json& value, std::string_view what) {
  Series series;
  series.path = path_from_json(require(value, "path", what), what);
  series.operation = parse_operation(require_string(value, "operation", what));
  series.limit = not_negative_field(value, "limit", what);
  series.limit_source = text_field(value, "limit_source", what);
  series.points = points_from_json(value, what);
  if (value.contains("pairs")) series.pairs = static_cast<int>(require_integer(value, "pairs", what, 1, 1 << 20));
  return series;
}

Json to_json(const PairClass& entry) {
  return {{"name", entry.name}, {"members", pairs_to_json(entry.members)}, {"processes", entry.processes}};
}

PairClass class_from_json(const Json& value, std::string_view what) {
  PairClass entry;
  entry.name = text_field(value, "name", what);
  entry.members = pairs_field(value, "members", what);
  entry.processes = static_cast<int>(require_integer(value, "processes", what, 1, 2));
  return entry;
}

Json to_json(const FirstUse& entry) { return {{"path", waywiser::to_json(entry.path)}, {"seconds", entry.seconds}}; }

FirstUse first_use_from_json(const Json& value, std::string_view what) {
  return {path_from_json(require(value, "path", what), what), not_negative_field(value, "seconds", what)};
}

Json to_json(const Unavailable& entry) {
  Json value = waywiser::to_json(entry.path);
  value["reason"] = entry.reason;
  return value;
}

Unavailable unavailable_from_json(const Json& value, std::string_view what) {
  return {path_from_json(value, what), text_field(value, "reason", what)};
}

Json to_json(const Rejected& entry) {
  return {{"path", waywiser::to_json(entry.path)},
          {"operation", name(entry.operation)},
          {"bytes", entry.bytes},
          {"reason", entry.reason}};
}

Rejected rejected_from_json(const Json& value, std::string_view what) {
  return {path_from_json(require(value, "path", what), what), parse_operation(require_string(value, "operation", what)),
          bytes_field(value, "bytes", what), text_field(value, "reason", what)};
}

// Version 1 has paths to one other machine, which its state describes.
void name_other_node(Profile& profile) {
  const auto other = profile.state.find("other");
  if (other == profile.state.end() || !other->is_object()) return;
  const auto text_of = [&](const char* key) {
    const auto field = other->find(key);
    return field != other->end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  const NodeType type = node_type(text_of("fingerprint"));
  if (type == some_other_node) return;
  profile.other_nodes = {{text_of("fingerprint"), text_of("machine")}};
  const auto named = [&](auto& entries) {
    for (auto& entry : entries) give_type(entry.path, type);
  };
  for (PairClass& entry : profile.classes)
    for (auto& [source, destination] : entry.members) give_type(source, type), give_type(destination, type);
  named(profile.series);
  named(profile.searched);
  named(profile.survey);
  named(profile.first_use);
  named(profile.unavailable);
  named(profile.rejected);
}

template <typename Entry>
Json list(const std::vector<Entry>& entries) {
  Json values = Json::array();
  for (const Entry& entry : entries) values.push_back(to_json(entry));
  return values;
}

template <typename Entry>
std::vector<Entry> read_list(const Json& value, std::string_view key, std::string_view what,
                             Entry (*read)(const Json&, std::string_view)) {
  std::vector<Entry> entries;
  for (const Json& entry : list_field(value, key, what, most_entries)) {
    const std::string where = std::string(what) + ": " + std::string(key) + "[" + std::to_string(entries.size()) + "]";
    entries.push_back(read(entry, where));
  }
  return entries;
}

}  // namespace

std::string_view name(Operation operation) noexcept {
  switch (operation) {
    case Operation::latency: return "latency";
    case Operation::streaming: return "streaming";
    case Operation::bidirectional: return "bidirectional";
    case Operation::loaded: return "loaded";
  }
  return "unknown";
}

Operation parse_operation(std::string_view text) {
  for (const Operation operation : operations)
    if (name(operation) == text) return operation;
  throw Error(ErrorKind::invalid_input,
              quoted(text, 64) + " is not an operation: write latency, streaming, bidirectional or loaded");
}

Json to_json(const Profile& profile) {
  Json value{{"schema", schema},
             {"version", version},
             {"fingerprint", profile.fingerprint},
             {"machine", profile.machine},
             {"backend", profile.backend},
             {"simulated", profile.simulated},
             {"created", profile.created},
             {"state", profile.state},
             {"other_nodes", other_nodes_to_json(profile.other_nodes)},
             {"classes", list(profile.classes)},
             {"series", list(profile.series)},
             {"searched", list(profile.searched)},
             {"first_use", list(profile.first_use)},
             {"unavailable", list(profile.unavailable)},
             {"rejected", list(profile.rejected)}};
  if (!profile.survey.empty()) value["survey"] = list(profile.survey);
  if (!profile.collectives.empty()) value["collectives"] = list(profile.collectives);
  return value;
}

Profile profile_from_json(const Json& value, std::string_view what) {
  const int found = check_schema(value, schema, oldest, version, what);
  Profile profile;
  profile.fingerprint = text_field(value, "fingerprint", what);
  profile.machine = text_field(value, "machine", what);
  profile.backend = text_field(value, "backend", what);
  profile.simulated = bool_field(value, "simulated", what);
  profile.created = text_field(value, "created", what);
  profile.state = require(value, "state", what);
  if (!profile.state.is_object())
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'state' must be an object");
  profile.classes = read_list<PairClass>(value, "classes", what, class_from_json);
  profile.series = read_list<Series>(value, "series", what, series_from_json);
  if (value.contains("searched")) profile.searched = read_list<Series>(value, "searched", what, series_from_json);
  if (value.contains("survey")) profile.survey = read_list<Series>(value, "survey", what, series_from_json);
  profile.first_use = read_list<FirstUse>(value, "first_use", what, first_use_from_json);
  profile.unavailable = read_list<Unavailable>(value, "unavailable", what, unavailable_from_json);
  profile.rejected = read_list<Rejected>(value, "rejected", what, rejected_from_json);
  if (value.contains("collectives"))
    profile.collectives = read_list<CollectiveSeries>(value, "collectives", what, collective_from_json);
  if (found == 1)
    name_other_node(profile);
  else
    profile.other_nodes = other_nodes_field(value, what);
  return profile;
}

}  // namespace waywiser
