#include "apps/navier_stokes/run.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/ending.hpp"
#include "apps/navier_stokes/output/checkpoint.hpp"
#include "apps/navier_stokes/output/durable_file.hpp"
#include "apps/navier_stokes/output/history.hpp"
#include "apps/navier_stokes/output/progress.hpp"
#include "apps/navier_stokes/output/report.hpp"
#include "apps/navier_stokes/output/vtu.hpp"
#include "apps/navier_stokes/solver/monitor.hpp"
#include "apps/navier_stokes/step_lengths.hpp"

namespace flow {
namespace {

constexpr std::int64_t steps_between_shares = 5;  // of which the last one finds the share of exchanges
// Cells in a loop of so few that an exchange takes longer, about.
constexpr std::int64_t whole_on_gpus = 131'072, whole_on_hosts = 1024;

LocalMesh mesh_of(waywiser::Group& group, const FlowCase& made) {
  if (made.mesh.cells() < group.size())
    throw waywiser::Error(waywiser::ErrorKind::invalid_input,
                          std::to_string(made.mesh.cells()) + " cells for " + std::to_string(group.size()) + " ranks");
  if (made.parts == group.size()) return local_mesh(made.mesh, made.part_of, group.rank(), made.boundary_at);
  std::vector<Vector3> centers;
  for (std::int64_t i = 0; i < made.mesh.cells(); ++i) centers.push_back(geometry_of_cell(made.mesh, i).center);
  return local_mesh(made.mesh, bisect(centers, group.size()), group.rank(), made.boundary_at);
}

// Figures of all ranks that the options of the flow depend on.
struct MeshFigures {
  double smallest = 0;  // the edge of a cube, in two dimensions a square, in proportion to the shortest distance
  double largest_angle = 0;
  bool outlet = false;
  double wall_distance = 0;  // the greatest of the cells at walls
};

// Nothing flows through a wall.
bool is_wall(const BoundaryCondition& condition, const Vector3& area) {
  return !condition.outlet && !condition.symmetry &&
         std::abs(dot(condition.velocity, area)) <= 1e-6 * norm(condition.velocity) * norm(area);
}

MeshFigures figures_of(Exchanges& exchanges, const LocalMesh& mesh) {
  double shortest = 1e300, angle = 0, outlet = 0, wall = 0;
  for (const LocalMesh::Face& face : mesh.faces) {
    const bool border = face.outside < 0;
    const Vector3 d = border ? 2.0 * face.from_inside : face.from_inside - face.from_outside;
    shortest = std::min(shortest, norm(d));
    angle = std::max(angle, std::sqrt(std::max(0.0, 1 - std::pow(dot(d, face.area) / norm(d) / norm(face.area), 2))));
    if (border && is_wall(mesh.boundary[at(-1 - face.outside)], face.area))
      wall = std::max(wall, dot(face.from_inside, face.area) / norm(face.area));
  }
  for (const BoundaryCondition& each : mesh.boundary) outlet = std::max(outlet, each.outlet ? 1.0 : 0.0);
  return {-exchanges.max(-shortest), exchanges.max(angle), exchanges.max(outlet) > 0, exchanges.max(wall)};
}

FlowOptions flow_options(const RunOptions& options, const FlowCase& made, const MeshFigures& figures, bool gpu) {
  FlowOptions flow;
  flow.viscosity = made.viscosity;
  flow.force = made.force;
  flow.eddies = made.eddies;
  flow.scalar = made.scalar;
  flow.tolerance = options.tolerance;
  flow.average_from = options.average_from;
  flow.memory = options.memory > 0 ? options.memory : made.memory;
  flow.iterations = options.iterations;
  flow.time_step = options.time_step > 0 ? options.time_step : options.courant * figures.smallest / made.speed;
  flow.corrections = options.corrections >= 0 ? options.corrections : figures.largest_angle > 1e-6 ? 1 : 0;
  flow.whole_level = options.whole_level >= 0 ? options.whole_level : gpu ? whole_on_gpus : whole_on_hosts;
  return flow;
}

double end_of(const RunOptions& options, const FlowCase& made) { return options.time > 0 ? options.time : made.time; }

std::vector<Vector3> at_centers(const LocalMesh& mesh, const std::function<Vector3(const Vector3&)>& function) {
  std::vector<Vector3> values;
  for (std::int64_t i = 0; i < mesh.owned; ++i)
    values.push_back(function(geometry_of_cell(mesh.owned_cells, i).center));
  return values;
}

// What tells a flow's checkpoints from others: the case, not how it is computed.
std::string key_of(const RunOptions& options, const FlowCase& made) {
  if (!made.key.empty()) return "case file " + made.key;
  char text[300];
  std::snprintf(text, sizeof text, "%s %s cells=%lld reynolds=%.17g", options.wishes.name.c_str(),
                options.wishes.shape.c_str(), static_cast<long long>(made.mesh.cells()), made.reynolds);
  return text;
}

void add_means(std::vector<CellField>& fields, const std::vector<double>& means, double density) {
  CellField velocity{"mean_velocity", 3, {}}, pressure{"mean_pressure", 1, {}}, squares{"velocity_variance", 3, {}};
  for (std::size_t i = 0; i < means.size(); i += FlowMeans::components) {
    const auto cell = means.begin() + static_cast<std::ptrdiff_t>(i);
    velocity.values.insert(velocity.values.end(), cell, cell + 3);
    pressure.values.push_back(density * cell[3]);
    squares.values.insert(squares.values.end(), cell + 4, cell + 7);
  }
  for (CellField* each : {&velocity, &pressure, &squares}) fields.push_back(std::move(*each));
}

// What a frame has.
std::vector<CellField> fields_of(FlowSolver& solver, const FlowValues& values, const FlowCase& made) {
  std::vector<double> pressure = solver.owned_values(solver.pressure_at_end());
  for (double& each : pressure) each *= made.density;
  std::vector<CellField> fields = {{"velocity", 3, values.velocity}, {"pressure", 1, std::move(pressure)}};
  if (!values.scalar.empty()) fields.push_back({made.scalar_name, 1, values.scalar});
  if (solver.eddy_viscosity() != nullptr)
    fields.push_back({"eddy_viscosity", 1, solver.owned_values(solver.eddy_viscosity())});
  if (!values.means.empty()) add_means(fields, values.means, made.density);
  return fields;
}

void choose_variants(Exchanges& exchanges, const RunOptions& options) {
  if (options.exchange == "auto")
    exchanges.tune(options.tune_seconds);
  else if (options.exchange != "default")
    exchanges.use(waywiser::parse_halo_variant(options.exchange));
}

}  // namespace

RunResult run(waywiser::Group& group, const RunOptions& options) {
  const double begun = Exchanges::now();
  FlowCase made = flow_case(options.wishes);
  const LocalMesh mesh = mesh_of(group, made);
  const std::int64_t cells = made.mesh.cells();
  apps::Processor processor(group, options.threads);
  Exchanges exchanges(group, processor);
  const MeshFigures figures = figures_of(exchanges, mesh);
  FlowOptions flow = flow_options(options, made, figures, processor.place().kind == waywiser::PlaceKind::gpu);
  const std::string key = key_of(options, made);
  const double end = end_of(options, made);
  const StepLengths lengths(options, flow.time_step, end);
  flow.time_step = lengths.first();
  FlowSolver solver(exchanges, mesh, flow, !figures.outlet);
  const double y_plus = expected_y_plus(made.reynolds, figures.wall_distance / made.length);
  if (group.rank() == 0) std::fputs(resolution_note(y_plus, options.face_reynolds).c_str(), stderr);

  made.mesh = {};  // of no use any more, and large
  const bool writes = !options.folder.empty();
  if (writes) std::filesystem::create_directories(options.folder);
  Checkpoints checkpoints(group, options.folder, key, mesh);
  std::optional<FlowValues> found;
  if (options.resume) found = checkpoints.newest(solver.values());
  if (found)
    solver.continue_with(*found);
  else
    solver.start_with(at_centers(mesh, made.start));
  choose_variants(exchanges, options);

  const std::int64_t first = solver.steps();
  Frames frames(options.frames, options.steps, end, solver);
  std::optional<VtuSeries> series;
  std::optional<History> history;
  if (writes) series.emplace(options.folder, group.rank(), group.size(), mesh, found.has_value(), solver.time());
  if (writes && group.rank() == 0) history.emplace(options.folder / "history.csv", found ? first : -1);

  ChangeMonitor monitor(solver);
  Progress progress(options.progress && group.rank() == 0, first, lengths.about(solver));
  RunTimes times;
  double change = 0;
  RunEnding ending;
  for (std::int64_t step = first + 1; !lengths.at_end(solver); ++step) {
    solver.set_time_step(lengths.next(solver));
    const bool last = lengths.ends_with_next(solver);
    const bool records = step % options.record == 0 || last;
    if (records) monitor.remember();
    exchanges.forget_spent();
    exchanges.set_timed((step - first) % steps_between_shares == 0 || last);
    processor.wait();
    const double before = Exchanges::now();
    const StepReport report = solver.step();
    processor.wait();
    ending = ending_of_step(solver, report, made.speed);
    if (!ending.is_result()) break;
    if (step > first + options.untimed)
      times.add(Exchanges::now() - before, exchanges.timed() ? &exchanges.spent() : nullptr, report);
    if (records) {
      change = monitor.change(solver.options().time_step);
      const Vector3 force = force_on_body(solver);
      if (history) history->add({step, solver.time(), change, report, made.density * force});
    }
    const bool steady = records && change < options.steady;
    const bool framed = writes && (last || steady || frames.is_due(solver));
    const bool kept = writes && options.checkpoint > 0 && step % options.checkpoint == 0;
    if (records || framed || kept) ending = ending_of_growth(solver, made.speed);
    std::optional<FlowValues> values;
    if (ending.is_result() && (framed || kept)) values = finite_values(solver);
    if (ending.is_result() && (framed || kept) && !values) ending = blown_up("it is not finite", step);
    if (!ending.is_result()) break;
    if (framed) series->add(step, solver.time(), fields_of(solver, *values, made));
    if (kept) checkpoints.write(*values);
    progress.at(step, lengths.about(solver));
    if (steady) ending.name = "steady";
    if (steady) break;
  }
  if (ending.is_garbage()) checkpoints.take_back();
  if (ending.is_result()) {
    const RunEnding resolution = ending_of_resolution(solver, options.face_reynolds);
    if (!resolution.is_result()) ending = resolution;
  }

  ReportInput input;
  input.name = std::filesystem::path(options.wishes.name).stem().string();
  input.shape = options.wishes.shape;
  input.cells = cells;
  input.reynolds = made.reynolds;
  input.flow = solver.options();
  input.density = made.density;
  input.names = made.names;
  input.expected_y_plus = y_plus;
  input.first = first;
  input.ending = ending.name;
  input.reason = ending.reason;
  input.change = change;
  input.setup_and_all = Exchanges::now() - begun;
  if (made.exact)
    input.error =
        velocity_error(solver, at_centers(mesh, [&](const Vector3& at) { return made.exact(at, solver.time()); }));
  const std::string report = report_json(solver, exchanges, times, input);
  if (writes && group.rank() == 0) write_durably(options.folder / "report.json", report);
  return {report, ending.reason};
}

}  // namespace flow
