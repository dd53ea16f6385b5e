#include "apps/navier_stokes/solver/flow_solver.hpp"

#include <algorithm>
#include <utility>

#include "apps/navier_stokes/solver/operators.hpp"

namespace flow {
namespace {

// Velocities are solved more exactly than pressures: it costs little, and a step changes them little.
constexpr double velocity_tolerance = 1e-3, least_tolerance = 1e-13;

// Smooth pressures begin with this step.
constexpr std::int64_t first_smooth = 2;

// right = volume * (velocity + step * (force - pressure gradient)) + step * explicit terms at the middle of the step,
// `ratio`: of its length to that of the step before; 0: there is none.
void collect_known_terms(apps::Processor& processor, const FlowMesh::View& mesh, const Vector3& force, double step,
                         double ratio, const double* terms, const double* old, const double* gradient,
                         const double* velocity, double* right) {
  const double now = 1 + ratio / 2, before = -ratio / 2;
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

void copy(apps::Processor& processor, std::int64_t count, const double* from, double* to) {
  processor.for_each(count, [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
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
      face_force_(exchanges.processor(), 3 * flux_.size()),
      old_pressure_(exchanges.processor(), mesh.cells),
      end_pressure_(exchanges.processor(), mesh.cells),
      end_gradient_(exchanges.processor(), 3 * mesh.owned),
      eddy_(exchanges.processor(), has_eddies() ? mesh.cells : 0),
      dimensions_(mesh.dimensions) {
  const auto partition = exchanges.partition_of(mesh.cells, mesh.neighbors);
  velocity_ghosts_ = exchanges.add(partition, velocity_, 3);
  velocity_gradient_ghosts_ = exchanges.add(partition, velocity_gradient_, 9);
  pressure_ghosts_ = exchanges.add(partition, pressure_, 1);
  pressure_gradient_ghosts_ = exchanges.add(partition, pressure_gradient_, 3);
  if (has_eddies()) eddy_ghosts_ = exchanges.add(partition, eddy_, 1);
  if (options.average_from < never) means_.emplace(exchanges.processor(), mesh.owned);
  if (options.scalar.diffusivity > 0) scalar_.emplace(exchanges, mesh_, mesh, options.scalar, options.time_step);
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
  const auto owned = static_cast<std::size_t>(mesh.owned);
  if (scalar_) scalar_->set(std::vector<double>(owned, options_.scalar.start), std::vector<double>(owned, 0));
}

FlowValues FlowSolver::values() const {
  FlowValues all{velocity_.values(),
                 pressure_.values(),
                 old_pressure_.values(),
                 old_explicit_.values(),
                 scalar_ ? scalar_->values() : std::vector<double>{},
                 scalar_ ? scalar_->old_explicit() : std::vector<double>{},
                 means_ && means_->time() > 0 ? means_->values() : std::vector<double>{},
                 flux_.values(),
                 skew_flux_.values(),
                 time_,
                 old_step_,
                 end_share_,
                 means_ ? means_->time() : 0,
                 steps_};
  const auto owned = static_cast<std::size_t>(mesh_.view().owned);
  all.velocity.resize(3 * owned);
  all.pressure.resize(owned);
  all.old_pressure.resize(owned);
  return all;
}

void FlowSolver::continue_with(const FlowValues& values) {
  const auto assign = [](apps::Array<double>& to, std::vector<double> from) {
    from.resize(static_cast<std::size_t>(to.size()), 0);  // ghosts
    to.assign(from);
  };
  assign(velocity_, values.velocity);
  assign(pressure_, values.old_pressure);
  exchanges_.fill(pressure_ghosts_);
  copy(exchanges_.processor(), pressure_.size(), pressure_.data(), old_pressure_.data());
  assign(pressure_, values.pressure);
  old_explicit_.assign(values.old_explicit);
  if (means_) means_->set(values.means, values.averaged);
  if (scalar_) scalar_->set(values.scalar, values.old_scalar_explicit);
  flux_.assign(values.flux);
  skew_flux_.assign(values.skew_flux);
  exchanges_.fill(velocity_ghosts_);
  exchanges_.fill(pressure_ghosts_);
  compute_pressure_gradient(exchanges_.processor(), mesh_.view(), pressure_.data(), pressure_gradient_.data());
  exchanges_.fill(pressure_gradient_ghosts_);
  time_ = values.time;
  old_step_ = values.old_step;
  end_share_ = values.end_share;
  steps_ = values.steps;
}

// The velocity at the end of the step, with the old pressure gradient.
SolverResult FlowSolver::predict_velocity(StepReport& report) {
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = mesh_.view();
  compute_velocity_gradient(processor, mesh, velocity_.data(), velocity_gradient_.data());
  exchanges_.fill(velocity_gradient_ghosts_);
  if (has_eddies()) {
    compute_eddy_viscosity(processor, mesh, dimensions_, options_.eddies, velocity_gradient_.data(), eddy_.data());
    exchanges_.fill(eddy_ghosts_);
  }
  compute_explicit_terms(processor, mesh, options_.viscosity, eddy_viscosity(), velocity_.data(),
                         velocity_gradient_.data(), flux_.data(), face_force_.data(), explicit_.data());
  const double ratio = old_step_ > 0 ? options_.time_step / old_step_ : 0;
  const double exact = std::max(velocity_tolerance * options_.tolerance, least_tolerance);
  if (scalar_) report.scalar = scalar_->step(flux_.data(), eddy_viscosity(), ratio, exact, options_.iterations);
  const double kept = std::max(0.0, 1 - options_.time_step / options_.memory);
  keep_flux(processor, mesh, kept, velocity_.data(), velocity_gradient_.data(), skew_flux_.data(), flux_.data());
  const double step = options_.time_step;
  double *b = right_.data(), *u = velocity_.data();
  collect_known_terms(processor, mesh, options_.force, step, ratio, explicit_.data(), old_explicit_.data(),
                      pressure_gradient_.data(), u, b);
  // Half of it at the beginning of the step; given values count for both halves.
  add_diffusion(processor, mesh, diffusion_.view(), step * options_.viscosity / 2, 2, u, b);
  return momentum_solver_.solve(u, velocity_ghosts_, b, exact, options_.iterations);
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

void FlowSolver::set_time_step(double step) {
  if (step == options_.time_step) return;
  options_.time_step = step;
  momentum_solver_.set_share(step * options_.viscosity / 2);
  if (scalar_) scalar_->set_time_step(step);
}

const double* FlowSolver::pressure_at_end() {
  const double share = steps_ > first_smooth ? end_share_ : 0;
  const double *p = pressure_.data(), *old = old_pressure_.data();
  double* end = end_pressure_.data();
  exchanges_.processor().for_each(mesh_.view().cells,
                                  [=] APPS_CALLABLE(std::int64_t i) { end[i] = p[i] + share * (p[i] - old[i]); });
  return end;
}

const double* FlowSolver::gradient_at_end() {
  compute_pressure_gradient(exchanges_.processor(), mesh_.view(), pressure_at_end(), end_gradient_.data());
  return end_gradient_.data();
}

std::vector<double> FlowSolver::owned_values(const double* of_cells) {
  apps::Array<double> owned(exchanges_.processor(), mesh_.view().owned);
  copy(exchanges_.processor(), owned.size(), of_cells, owned.data());
  exchanges_.processor().wait();
  return owned.values();
}

StepReport FlowSolver::step() {
  StepReport report;
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = mesh_.view();
  report.momentum = predict_velocity(report);

  const double step = options_.time_step;
  copy(processor, mesh.cells, pressure_.data(), old_pressure_.data());
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
  end_share_ = step / (step + old_step_);
  old_step_ = step;
  ++steps_;
  time_ += step;
  if (means_ && time_ - step >= options_.average_from - 1e-9 * step) means_->add(step, u, pressure_at_end());
  return report;
}

}  // namespace flow
