#include "waywiser/policy/plan.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/measure/old_names.hpp"
#include "waywiser/measure/profile_fields.hpp"

namespace waywiser {
namespace {

constexpr std::string_view schema = "waywiser.plan";
constexpr int oldest = 1, version = 2;
constexpr std::size_t most_rows = 100'000;
constexpr std::size_t most_points = 1024;

Json expected_to_json(const std::vector<std::pair<Bytes, Seconds>>& expected) {
  Json points = Json::array();
  for (const auto& [bytes, seconds] : expected) points.push_back({{"bytes", bytes}, {"seconds", seconds}});
  return points;
}

Json runner_up_to_json(const PlanRow& row) {
  if (!row.runner_up) return nullptr;
  return {{"path", to_json(*row.runner_up)}, {"ratio", row.runner_up_ratio}};
}

Json to_json(const PlanRow& row) {
  Json value{{"pairs", pairs_to_json(row.pairs)},   {"rail", row.rail},
             {"processes", row.processes},          {"operation", name(row.operation)},
             {"from_bytes", row.from_bytes},        {"to_bytes", row.to_bytes},
             {"path", to_json(row.path)},           {"expected", expected_to_json(row.expected)},
             {"runner_up", runner_up_to_json(row)}, {"why", row.why}};
  if (row.one_sided) value["one_sided"] = to_json(*row.one_sided);
  if (row.reading) value["reading"] = to_json(*row.reading);
  if (row.encrypted) value["encrypted"] = to_json(*row.encrypted);
  return value;
}

void read_runner_up(PlanRow& row, const Json& value, std::string_view what) {
  if (value.is_null()) return;
  row.runner_up = path_from_json(require(value, "path", what), what);
  row.runner_up_ratio = positive_field(value, "ratio", what);
}

// The path of a row is written for the first of its pairs.
void check_path(const PlanRow& row, std::string_view what) {
  const auto& [source, destination] = row.pairs.front();
  if (row.path.source != source || row.path.destination != destination || row.path.processes != row.processes)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'path' is not for the first of 'pairs'");
}

std::vector<std::pair<Bytes, Seconds>> expected_from_json(const Json& row, std::string_view what) {
  std::vector<std::pair<Bytes, Seconds>> expected;
  for (const Json& point : list_field(row, "expected", what, most_points))
    expected.emplace_back(bytes_field(point, "bytes", what), positive_field(point, "seconds", what));
  return expected;
}

// For a row of either kind.
template <typename Row>
void read_range(Row& row, const Json& value, std::string_view what) {
  row.from_bytes = static_cast<Bytes>(require_integer(value, "from_bytes", what, 0, INT64_MAX));
  row.to_bytes = static_cast<Bytes>(require_integer(value, "to_bytes", what, 0, INT64_MAX));
  if (row.from_bytes > row.to_bytes)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'from_bytes' is above 'to_bytes'");
}

Json to_json(const CollectiveRow& row) {
  return {{"operation", row.operation},
          {"memory", row.memory},
          {"ranks", row.ranks},
          {"from_bytes", row.from_bytes},
          {"to_bytes", row.to_bytes},
          {"way", row.way},
          {"expected", expected_to_json(row.expected)},
          {"runner_up", row.runner_up},
          {"runner_up_ratio", row.runner_up_ratio},
          {"why", row.why}};
}

CollectiveRow collective_row_from_json(const Json& value, std::string_view what) {
  CollectiveRow row;
  row.operation = text_field(value, "operation", what);
  row.memory = text_field(value, "memory", what);
  row.ranks = static_cast<int>(require_integer(value, "ranks", what, 2, 1 << 20));
  read_range(row, value, what);
  row.way = algorithm_of_today(text_field(value, "way", what));
  row.expected = expected_from_json(value, what);
  row.runner_up = algorithm_of_today(text_field(value, "runner_up", what));
  row.runner_up_ratio = not_negative_field(value, "runner_up_ratio", what);
  row.why = text_field(value, "why", what);
  return row;
}

PlanRow row_from_json(const Json& value, int found, std::string_view what) {
  PlanRow row;
  row.pairs = pairs_field(value, "pairs", what);
  if (found > 1) row.rail = text_field(value, "rail", what);
  row.processes = static_cast<int>(require_integer(value, "processes", what, 1, 2));
  row.operation = parse_operation(require_string(value, "operation", what));
  read_range(row, value, what);
  row.path = path_from_json(require(value, "path", what), what);
  check_path(row, what);
  row.expected = expected_from_json(value, what);
  read_runner_up(row, require(value, "runner_up", what), what);
  row.why = text_field(value, "why", what);
  if (value.contains("one_sided")) row.one_sided = path_from_json(value.at("one_sided"), what);
  if (value.contains("reading")) row.reading = path_from_json(value.at("reading"), what);
  if (value.contains("encrypted")) row.encrypted = path_from_json(value.at("encrypted"), what);
  return row;
}

// Version 1 has paths to one other machine.
void name_other_node(Plan& plan, const std::string& fingerprint) {
  const NodeType type = node_type(fingerprint);
  if (type == some_other_node) return;
  plan.other_nodes = {{fingerprint, ""}};
  for (PlanRow& row : plan.rows) {
    for (auto& [source, destination] : row.pairs) give_type(source, type), give_type(destination, type);
    give_type(row.path, type);
    if (row.runner_up) give_type(*row.runner_up, type);
    if (row.one_sided) give_type(*row.one_sided, type);
  }
}

}  // namespace

Json to_json(const Plan& plan) {
  Json rows = Json::array();
  for (const PlanRow& row : plan.rows) rows.push_back(to_json(row));
  Json value{{"schema", schema},
             {"version", version},
             {"fingerprint", plan.fingerprint},
             {"machine", plan.machine},
             {"backend", plan.backend},
             {"simulated", plan.simulated},
             {"other_nodes", other_nodes_to_json(plan.other_nodes)},
             {"rows", rows}};
  for (const CollectiveRow& row : plan.collectives) value["collectives"].push_back(to_json(row));
  return value;
}

Plan plan_from_json(const Json& value, std::string_view what) {
  const int found = check_schema(value, schema, oldest, version, what);
  Plan plan;
  plan.fingerprint = text_field(value, "fingerprint", what);
  plan.machine = text_field(value, "machine", what);
  plan.backend = text_field(value, "backend", what);
  plan.simulated = bool_field(value, "simulated", what);
  for (const Json& entry : list_field(value, "rows", what, most_rows))
    plan.rows.push_back(
        row_from_json(entry, found, std::string(what) + ": rows[" + std::to_string(plan.rows.size()) + "]"));
  if (found > 1)
    plan.other_nodes = other_nodes_field(value, what);
  else if (value.contains("other"))
    name_other_node(plan, text_field(value, "other", what));
  if (!value.contains("collectives")) return plan;
  for (const Json& entry : list_field(value, "collectives", what, most_rows))
    plan.collectives.push_back(collective_row_from_json(
        entry, std::string(what) + ": collectives[" + std::to_string(plan.collectives.size()) + "]"));
  return plan;
}

}  // namespace waywiser
