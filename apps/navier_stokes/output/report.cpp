#include "apps/navier_stokes/output/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "apps/navier_stokes/solver/monitor.hpp"

namespace flow {
namespace {

class Json {
 public:
  // JSON has no infinity, and nothing that is not a number.
  void add(const char* name, double value) { put(name, std::isfinite(value) ? formatted("%.9g", value) : "null"); }
  void add(const char* name, std::int64_t value) { put(name, std::to_string(value)); }
  void add(const char* name, const std::string& text) { put(name, quoted(text)); }
  void add(const char* name, const Vector3& v) {
    put(name, formatted("[%.9g, ", v.x) + formatted("%.9g, ", v.y) + formatted("%.9g]", v.z));
  }
  void add(const char* name, const std::vector<Json>& objects) {
    std::string list;
    for (const Json& each : objects) list += (list.empty() ? "" : ", ") + ("{" + each.lines_ + "}");
    put(name, "[" + list + "]");
  }
  void add(const char* name, const std::vector<std::int64_t>& values) {
    std::string list;
    for (const std::int64_t value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
    put(name, "[" + list + "]");
  }
  std::string text() const { return "{\n" + lines_ + "\n}\n"; }

 private:
  static std::string quoted(const std::string& text) {
    std::string escaped = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    return escaped + "\"";
  }
  static std::string formatted(const char* format, double value) {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }
  void put(const char* name, const std::string& value) {
    lines_ += (lines_.empty() ? "  \"" : ",\n  \"") + std::string(name) + "\": " + value;
  }
  std::string lines_;
};

// In SI units, of a density of 1 unless the case has one; flows out of the mesh are positive.
std::vector<Json> boundaries_of(FlowSolver& solver, const ReportInput& input) {
  std::vector<Json> all;
  for (std::size_t i = 0; i < input.names.size(); ++i) {
    const BoundaryFigures found = boundary_figures(solver, static_cast<int>(i));
    Json json;
    json.add("name", input.names[i]);
    json.add("area_m2", found.area);
    json.add("mass_flow_out_kg_per_s", input.density * found.flow_out);
    json.add("mass_flow_back_kg_per_s", input.density * found.back);
    json.add("pressure_pa", input.density * found.pressure);
    json.add("force_n", input.density * found.force);
    json.add("y_plus", found.y_plus);
    all.push_back(json);
  }
  return all;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void RunTimes::add(waywiser::Seconds step, const Spent* more, const StepReport& report) {
  momentum_iterations += report.momentum.iterations;
  pressure_iterations += report.pressure.iterations;
  (more != nullptr ? timed_steps : steps).push_back(step);
  if (more == nullptr) return;
  spent.exchanges += more->exchanges;
  spent.reductions += more->reductions;
  spent.exchange_calls += more->exchange_calls;
  spent.reduction_calls += more->reduction_calls;
}

std::string report_json(FlowSolver& solver, Exchanges& exchanges, const RunTimes& times, const ReportInput& input) {
  const auto count = [](const std::vector<double>& steps) {
    return static_cast<double>(std::max<std::size_t>(steps.size(), 1));
  };
  std::vector<double> slowest = times.steps.empty() ? times.timed_steps : times.steps;
  if (!slowest.empty())
    exchanges.group().all_reduce(std::span<const double>(slowest), std::span(slowest), waywiser::ReduceOp::max);
  double mine = 0;
  for (const double each : times.timed_steps) mine += each;
  const auto [in_steps, in_exchanges, in_reductions] =
      exchanges.sum<3>({mine, times.spent.exchanges, times.spent.reductions});
  const waywiser::HaloCounts counts = exchanges.counts();
  const auto [messages, bytes, exchanged] =
      exchanges.sum<3>({static_cast<double>(counts.messages), static_cast<double>(counts.message_bytes),
                        static_cast<double>(counts.exchanges)});

  const double all_steps = std::max<double>(static_cast<double>(times.steps.size() + times.timed_steps.size()), 1);

  Json json;
  json.add("case", input.name);
  json.add("shape", input.shape);
  json.add("cells", input.cells);
  json.add("ranks", std::int64_t{exchanges.group().size()});
  json.add("reynolds", input.reynolds);
  json.add("time_step", input.flow.time_step);
  json.add("tolerance", input.flow.tolerance);
  json.add("first_step", input.first);
  json.add("steps", solver.steps());
  json.add("time", solver.time());
  json.add("ending", input.ending);
  if (!input.reason.empty()) json.add("reason", input.reason);
  json.add("change", input.change);
  json.add("face_reynolds", largest_face_reynolds(solver));
  json.add("expected_y_plus", input.expected_y_plus);
  json.add("divergence", largest_divergence(solver));
  json.add("energy", kinetic_energy(solver));
  if (input.error) json.add("velocity_error", *input.error);
  json.add("courant", courant_number(solver) * input.flow.time_step);
  if (!input.names.empty()) json.add("boundaries", boundaries_of(solver, input));
  json.add("levels", solver.multigrid().sizes());
  json.add("first_whole_level", static_cast<std::int64_t>(solver.multigrid().first_whole()));
  json.add("momentum_iterations_per_step", static_cast<double>(times.momentum_iterations) / all_steps);
  json.add("pressure_iterations_per_step", static_cast<double>(times.pressure_iterations) / all_steps);
  json.add("timed_steps", static_cast<std::int64_t>(slowest.size()));
  json.add("seconds_per_step", std::accumulate(slowest.begin(), slowest.end(), 0.0) / count(slowest));
  json.add("median_seconds_per_step", median(slowest));
  json.add("exchange_share", in_steps > 0 ? in_exchanges / in_steps : 0);
  json.add("reduction_share", in_steps > 0 ? in_reductions / in_steps : 0);
  json.add("exchanges_per_step", static_cast<double>(times.spent.exchange_calls) / count(times.timed_steps));
  json.add("variants", exchanges.variants());
  json.add("messages_per_exchange_and_rank", exchanged > 0 ? messages / exchanged : 0);
  json.add("bytes_per_exchange_and_rank", exchanged > 0 ? bytes / exchanged : 0);
  json.add("seconds", input.setup_and_all);
  return json.text();
}

}  // namespace flow
