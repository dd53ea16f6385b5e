#include "apps/navier_stokes/solver/flow_solver.hpp"

#include <algorithm>
#include <utility>

#include "apps/navier_stokes/solver/operators.hpp"

namespace flow {
namespace {

// Velocities are solved more exactly than pressures: it costs little, and a step changes them little.
constexpr double velocity_tolerance = 1e-3, least_tolerance = 1e-13;

// right = volume * (velocity + step * (force - pressure gradient)) + step * explicit terms at the middle of the step.
void collect_known_terms(apps::Processor& processor, const FlowMesh::View& mesh, const Vector3& force, double step,
                         bool has_old, const double* terms, const double* old, const double* gradient,
                         const double* velocity, double* right) {
  const double now = has_old ? 1.5 : 1, before = has_old ? -0.5 : 0;
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Vector3 pushed = force - vector_at(gradient, i);
    const Vector3 carried = now * vector_at(terms, i) + before * vector_at(old, i);
    set_vector(right, i, mesh.volume[i] * (vector_at(velocity, i) + step * pushed) + step * carried);
  });
}

void add_vectors(apps::Processor& processor, std::int64_t cells, double factor, const double* more, double* to) {
  processor.for_each(
      cells, [=] APPS_CALLABLE(std::int64_t i) { set_vector(to, i, vector_at(to, i) + factor * vector_at(more, i)); });
}

void take_mean(Exchanges& exchanges, std::int64_t owned, double* values) {
  apps::Processor& processor = exchanges.processor();
  const double sum = processor.sum(owned, [=] APPS_CALLABLE(std::int64_t i) { return values[i]; });
  const auto [all, cells] = exchanges.sum<2>({sum, static_cast<double>(owned)});
  const double mean = all / cells;
  processor.for_each(owned, [=] APPS_CALLABLE(std::int64_t i) { values[i] -= mean; });
}

}  // namespace

FlowSolver::FlowSolver(Exchanges& exchanges, const LocalMesh& mesh, const FlowOptions& options, bool singular)
    : exchanges_(exchanges),
      options_(options),
      singular_(singular),
      mesh_(exchanges.processor(), mesh),
      diffusion_(exchanges.processor(), velocity_rows(mesh)),
      poisson_(exchanges.processor(), pressure_rows(mesh)),
      multigrid_(exchanges, {pressure_rows(mesh), mesh.cells, mesh.neighbors}, singular, options.whole_level),
      momentum_solver_(exchanges, exchanges.partition_of(mesh.cells, mesh.neighbors),
                       {mesh_.view().volume, diffusion_.view(), options.time_step * options.viscosity / 2}),
      pressure_solver_(exchanges, multigrid_, mesh.owned),
      velocity_(exchanges.processor(), 3 * mesh.cells),
      velocity_gradient_(exchanges.processor(), 9 * mesh.cells),
      pressure_(exchanges.processor(), mesh.cells),
      pressure_gradient_(exchanges.processor(), 3 * mesh.cells),
      explicit_(exchanges.processor(), 3 * mesh.owned),
      old_explicit_(exchanges.processor(), 3 * mesh.owned),
      right_(exchanges.processor(), 3 * mesh.owned),
      flux_(exchanges.processor(), static_cast<std::int64_t>(mesh.faces.size())),
      skew_flux_(exchanges.processor(), flux_.size()),
      corrected_flux_(exchanges.processor(), flux_.size()),
      face_force_(exchanges.processor(), 3 * flux_.size()) {
  const auto partition = exchanges.partition_of(mesh.cells, mesh.neighbors);
  velocity_ghosts_ = exchanges.add(partition, velocity_, 3);
  velocity_gradient_ghosts_ = exchanges.add(partition, velocity_gradient_, 9);
  pressure_ghosts_ = exchanges.add(partition, pressure_, 1);
  pressure_gradient_ghosts_ = exchanges.add(partition, pressure_gradient_, 3);
}

void FlowSolver::start_with(const std::vector<Vector3>& velocity) {
  std::vector<double> values(static_cast<std::size_t>(velocity_.size()), 0);
  for (std::size_t i = 0; i < velocity.size(); ++i)
    set_vector(values.data(), static_cast<std::int64_t>(i), velocity[i]);
  velocity_.assign(values);
  exchanges_.fill(velocity_ghosts_);
  const FlowMesh::View mesh = mesh_.view();
  compute_velocity_gradient(exchanges_.processor(), mesh, velocity_.data(), velocity_gradient_.data());
  exchanges_.fill(velocity_gradient_ghosts_);
  keep_flux(exchanges_.processor(), mesh, 0, velocity_.data(), velocity_gradient_.data(), skew_flux_.data(),
            flux_.data());
  add_flux(exchanges_.processor(), mesh, velocity_.data(), flux_.data());
}

FlowValues FlowSolver::values() const {
  FlowValues all{velocity_.values(),
                 pressure_.values(),
                 old_explicit_.values(),
                 flux_.values(),
                 skew_flux_.values(),
                 time_,
                 steps_};
  const auto owned = static_cast<std::size_t>(mesh_.view().owned);
  all.velocity.resize(3 * owned);
  all.pressure.resize(owned);
  return all;
}

void FlowSolver::continue_with(const FlowValues& values) {
  std::vector<double> velocity = values.velocity, pressure = values.pressure;
  velocity.resize(static_cast<std::size_t>(velocity_.size()), 0);
  pressure.resize(static_cast<std::size_t>(pressure_.size()), 0);
  velocity_.assign(velocity);
  pressure_.assign(pressure);
  old_explicit_.assign(values.old_explicit);
  flux_.assign(values.flux);
  skew_flux_.assign(values.skew_flux);
  exchanges_.fill(velocity_ghosts_);
  exchanges_.fill(pressure_ghosts_);
  compute_pressure_gradient(exchanges_.processor(), mesh_.view(), pressure_.data(), pressure_gradient_.data());
  exchanges_.fill(pressure_gradient_ghosts_);
  time_ = values.time;
  steps_ = values.steps;
  has_old_ = steps_ > 0;
}

// The velocity at the end of the step, with the old pressure gradient.
SolverResult FlowSolver::predict_velocity() {
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = mesh_.view();
  compute_velocity_gradient(processor, mesh, velocity_.data(), velocity_gradient_.data());
  exchanges_.fill(velocity_gradient_ghosts_);
  compute_explicit_terms(processor, mesh, options_.viscosity, velocity_.data(), velocity_gradient_.data(), flux_.data(),
                         face_force_.data(), explicit_.data());
  const double kept = std::max(0.0, 1 - options_.time_step / options_.memory);
  keep_flux(processor, mesh, kept, velocity_.data(), velocity_gradient_.data(), skew_flux_.data(), flux_.data());
  const double step = options_.time_step;
  double *b = right_.data(), *u = velocity_.data();
  collect_known_terms(processor, mesh, options_.force, step, has_old_, explicit_.data(), old_explicit_.data(),
                      pressure_gradient_.data(), u, b);
  // Half of it at the beginning of the step; given values count for both halves.
  add_diffusion(processor, mesh, diffusion_.view(), step * options_.viscosity / 2, 2, u, b);
  return momentum_solver_.solve(
      u, velocity_ghosts_, b, std::max(velocity_tolerance * options_.tolerance, least_tolerance), options_.iterations);
}

// Makes the flux free of divergence; the pressure's ghosts and gradient are up to date afterwards.
SolverResult FlowSolver::solve_pressure(bool last) {
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = mesh_.view();
  const double step = options_.time_step;
  take_pressure_correction(processor, mesh, step, pressure_gradient_.data(), flux_.data(), corrected_flux_.data());
  double *b = right_.data(), *p = pressure_.data();
  compute_divergence(processor, mesh, -1 / step, corrected_flux_.data(), b);
  if (singular_) take_mean(exchanges_, mesh.owned, b);
  const SolverResult result = pressure_solver_.solve(poisson_.view(), p, b, options_.tolerance, options_.iterations);
  if (singular_) take_mean(exchanges_, mesh.owned, p);
  exchanges_.fill(pressure_ghosts_);
  if (last) {
    swap(flux_, corrected_flux_);
    take_pressure_flux(processor, mesh, step, p, flux_.data());
  }
  compute_pressure_gradient(processor, mesh, p, pressure_gradient_.data());
  exchanges_.fill(pressure_gradient_ghosts_);
  return result;
}

StepReport FlowSolver::step() {
  StepReport report;
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = mesh_.view();
  report.momentum = predict_velocity();

  const double step = options_.time_step;
  double* u = velocity_.data();
  add_vectors(processor, mesh.owned, step, pressure_gradient_.data(), u);
  exchanges_.fill(velocity_ghosts_);
  add_flux(processor, mesh, u, flux_.data());
  for (int i = 0; i <= options_.corrections; ++i) {
    const SolverResult solved = solve_pressure(i == options_.corrections);
    report.pressure = {report.pressure.iterations + solved.iterations, solved.residual,
                       std::max(report.pressure.end, solved.end)};
  }
  add_vectors(processor, mesh.cells, -step, pressure_gradient_.data(), u);  // also in ghosts, where all terms are known

  swap(explicit_, old_explicit_);
  has_old_ = true;
  ++steps_;
  time_ += step;
  return report;
}

}  // namespace flow
