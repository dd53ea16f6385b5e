#include "waywiser/policy/plan.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/measure/profile_fields.hpp"

namespace waywiser {
namespace {

constexpr std::string_view schema = "waywiser.plan";
constexpr int version = 3;
constexpr std::size_t most_rows = 100'000;
constexpr std::size_t most_points = 1024;
constexpr std::size_t most_ways = 16;
constexpr std::size_t longest_way = 65536;  // a mix of a halo exchange names the variant of each kind of sides

Json expected_to_json(const std::vector<std::pair<Bytes, Seconds>>& expected) {
  Json points = Json::array();
  for (const auto& [bytes, seconds] : expected) points.push_back({{"bytes", bytes}, {"seconds", seconds}});
  return points;
}

Json ways_to_json(const std::vector<RankedWay>& ways) {
  Json list = Json::array();
  for (const RankedWay& each : ways)
    list.push_back({{"way", text(each.way)}, {"ratio", each.ratio > 0 ? Json(each.ratio) : Json(nullptr)}});
  return list;
}

Json to_json(const PlanRow& row) {
  const PlanKey& key = row.key;
  Json value{{"operation", key.operation},
             {"from_bytes", row.from_bytes},
             {"to_bytes", row.to_bytes},
             {"ways", ways_to_json(row.ways)},
             {"expected", expected_to_json(row.expected)},
             {"why", row.why}};
  if (key.is_message())
    value.update({{"pairs", pairs_to_json(key.pairs)},
                  {"processes", key.processes},
                  {"rail", key.rail},
                  {"encrypted", key.encrypted}});
  else
    value.update({{"memory", key.memory}, {"ranks", key.ranks}});
  if (!key.shape.empty()) value["shape"] = key.shape;
  if (!key.partner.empty()) value["partner"] = key.partner;
  return value;
}

// What `read` returns; its error gets the row's name.
template <typename Read>
auto named(std::string_view what, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), std::string(what) + ": " + error.what());
  }
}

PlanKey key_from_json(const Json& value, std::string_view what) {
  PlanKey key{text_field(value, "operation", what)};
  if (value.contains("pairs")) {
    named(what, [&] { return parse_operation(key.operation); });
    key.pairs = pairs_field(value, "pairs", what);
    key.processes = static_cast<int>(require_integer(value, "processes", what, 1, 2));
    key.rail = text_field(value, "rail", what);
    key.encrypted = bool_field(value, "encrypted", what);
  } else {
    key.memory = text_field(value, "memory", what);
    key.ranks = static_cast<int>(require_integer(value, "ranks", what, 1, 1 << 20));
  }
  if (value.contains("shape")) key.shape = text_field(value, "shape", what);
  if (value.contains("partner")) key.partner = text_field(value, "partner", what);
  return key;
}

std::vector<RankedWay> ways_from_json(const Json& row, std::string_view what) {
  std::vector<RankedWay> ways;
  for (const Json& each : list_field(row, "ways", what, most_ways)) {
    const bool has_ratio = !require(each, "ratio", what).is_null();
    const std::string way = require_string(each, "way", what);
    if (way.size() > longest_way) throw Error(ErrorKind::invalid_input, std::string(what) + ": 'way' is too long");
    ways.push_back({named(what, [&] { return parse_way(way); }), has_ratio ? positive_field(each, "ratio", what) : 0});
  }
  if (ways.empty()) throw Error(ErrorKind::invalid_input, std::string(what) + ": 'ways' is empty");
  return ways;
}

std::vector<std::pair<Bytes, Seconds>> expected_from_json(const Json& row, std::string_view what) {
  std::vector<std::pair<Bytes, Seconds>> expected;
  for (const Json& point : list_field(row, "expected", what, most_points))
    expected.emplace_back(bytes_field(point, "bytes", what), positive_field(point, "seconds", what));
  return expected;
}

PlanRow row_from_json(const Json& value, std::string_view what) {
  PlanRow row{key_from_json(value, what)};
  row.from_bytes = static_cast<Bytes>(require_integer(value, "from_bytes", what, 0, INT64_MAX));
  row.to_bytes = static_cast<Bytes>(require_integer(value, "to_bytes", what, 0, INT64_MAX));
  if (row.from_bytes > row.to_bytes)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'from_bytes' is above 'to_bytes'");
  row.ways = ways_from_json(value, what);
  row.expected = expected_from_json(value, what);
  row.why = text_field(value, "why", what);
  return row;
}

// The name of the command is in the message, since the profile of before is read.
void refuse_older(const Json& value, std::string_view what) {
  if (check_schema(value, schema, 1, version, what) < version)
    throw Error(ErrorKind::invalid_input,
                std::string(what) + ": a plan of an older version; `waywiser plan` makes one from its profile");
}

}  // namespace

const RankedWay* PlanRow::runner_up() const noexcept {
  return ways.size() > 1 && ways[1].ratio > 0 ? &ways[1] : nullptr;
}

Path PlanRow::path(const Way& way) const {
  const auto& [source, destination] = key.pairs.front();
  return {way.name, source, destination, key.processes, way.parameters};
}

Json to_json(const Plan& plan) {
  Json rows = Json::array();
  for (const PlanRow& row : plan.rows) rows.push_back(to_json(row));
  return {{"schema", schema},
          {"version", version},
          {"fingerprint", plan.fingerprint},
          {"machine", plan.machine},
          {"backend", plan.backend},
          {"simulated", plan.simulated},
          {"other_nodes", other_nodes_to_json(plan.other_nodes)},
          {"rows", rows}};
}

Plan plan_from_json(const Json& value, std::string_view what) {
  refuse_older(value, what);
  Plan plan;
  plan.fingerprint = text_field(value, "fingerprint", what);
  plan.machine = text_field(value, "machine", what);
  plan.backend = text_field(value, "backend", what);
  plan.simulated = bool_field(value, "simulated", what);
  plan.other_nodes = other_nodes_field(value, what);
  for (const Json& entry : list_field(value, "rows", what, most_rows))
    plan.rows.push_back(row_from_json(entry, std::string(what) + ": rows[" + std::to_string(plan.rows.size()) + "]"));
  return plan;
}

}  // namespace waywiser
