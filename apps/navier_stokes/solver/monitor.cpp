#include "apps/navier_stokes/solver/monitor.hpp"

#include <algorithm>

namespace flow {
namespace {

// Of the difference, or without `others` of the values.
double mean_square(FlowSolver& solver, const double* values, const double* others) {
  const FlowMesh::View mesh = solver.mesh();
  const Vector3 sums = solver.exchanges().processor().sum(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Vector3 apart = others != nullptr ? vector_at(values, i) - vector_at(others, i) : vector_at(values, i);
    return Vector3{mesh.volume[i] * dot(apart, apart), mesh.volume[i], 0};
  });
  const auto [square, volume] = solver.exchanges().sum<2>({sums.x, sums.y});
  return square / volume;
}

}  // namespace

ChangeMonitor::ChangeMonitor(FlowSolver& solver)
    : solver_(solver), before_(solver.exchanges().processor(), 3 * solver.mesh().owned) {}

void ChangeMonitor::remember() {
  double* to = before_.data();
  const double* from = solver_.velocity();
  solver_.exchanges().processor().for_each(before_.size(), [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
}

double ChangeMonitor::change(double seconds) {
  return std::sqrt(mean_square(solver_, solver_.velocity(), before_.data())) / seconds;
}

double mean_speed(FlowSolver& solver) { return std::sqrt(mean_square(solver, solver.velocity(), nullptr)); }

double largest_face_reynolds(FlowSolver& solver) {
  const FlowMesh::View mesh = solver.mesh();
  const double* u = solver.velocity();
  const double viscosity = solver.options().viscosity;
  const double mine = solver.exchanges().processor().max(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    if (out < 0 && mesh.border(out).outlet) return 0.0;
    const Vector3 own = vector_at(u, in), apart = (out < 0 ? mesh.border_velocity(f, own) : vector_at(u, out)) - own;
    return norm(apart) * norm(vector_at(mesh.area, f)) / mesh.coefficient[f] / viscosity;
  });
  return solver.exchanges().max(mine);
}

std::optional<FlowValues> finite_values(FlowSolver& solver) {
  FlowValues values = solver.values();
  double broken = 0;
  const auto look = [&](const auto& lists) {
    for (const auto list : lists)
      if (!std::ranges::all_of(values.*list, [](double value) { return std::isfinite(value); })) broken = 1;
  };
  look(FlowValues::cells);
  look(FlowValues::faces);
  if (solver.exchanges().max(broken) > 0) return {};
  return values;
}

Vector3 force_on_body(FlowSolver& solver) {
  const FlowMesh::View mesh = solver.mesh();
  const double *u = solver.velocity(), *slope = solver.gradient_at_end(), *p = solver.pressure_at_end();
  const double viscosity = solver.options().viscosity;
  const double* eddy = solver.eddy_viscosity();
  const Vector3 mine = solver.exchanges().processor().sum(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    if (out >= 0 || !mesh.border(out).body) return Vector3{};
    const double pressure = p[in] + dot(vector_at(slope, in), vector_at(mesh.skew, f));
    const Vector3 own = vector_at(u, in);
    const double all = viscosity + (eddy == nullptr ? 0 : eddy[in]);
    const Vector3 shear = (all * mesh.coefficient[f]) * (mesh.border_velocity(f, own) - own);
    return pressure * vector_at(mesh.area, f) - shear;
  });
  const auto [x, y, z] = solver.exchanges().sum<3>({mine.x, mine.y, mine.z});
  return {x, y, z};
}

double courant_number(FlowSolver& solver) {
  const FlowMesh::View mesh = solver.mesh();
  const double *flux = solver.flux(), *eddy = solver.eddy_viscosity();
  const double mine = solver.exchanges().processor().max(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k];
      sum += std::fabs(flux[f]) / 2 + (eddy == nullptr ? 0 : eddy[i] * mesh.coefficient[f]);
    }
    return sum / mesh.volume[i];
  });
  return solver.exchanges().max(mine);
}

BoundaryFigures boundary_figures(FlowSolver& solver, int number) {
  const FlowMesh::View mesh = solver.mesh();
  const double *u = solver.velocity(), *slope = solver.gradient_at_end(), *p = solver.pressure_at_end();
  const double *flux = solver.flux(), *eddy = solver.eddy_viscosity();
  const double viscosity = solver.options().viscosity;
  apps::Processor& processor = solver.exchanges().processor();
  const Vector3 force = processor.sum(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    if (!mesh.is_of(f, number) || mesh.border(mesh.outside[f]).outlet) return Vector3{};
    const Index in = mesh.inside[f];
    const Vector3 own = vector_at(u, in);
    const double pressure = p[in] + dot(vector_at(slope, in), vector_at(mesh.skew, f));
    const double all = viscosity + (eddy == nullptr ? 0 : eddy[in]);
    return pressure * vector_at(mesh.area, f) - all * mesh.coefficient[f] * (mesh.border_velocity(f, own) - own);
  });
  const Vector3 sums = processor.sum(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    if (!mesh.is_of(f, number)) return Vector3{};
    const Index in = mesh.inside[f];
    const double area = norm(vector_at(mesh.area, f));
    const double there = p[in] + dot(vector_at(slope, in), vector_at(mesh.skew, f));
    return Vector3{area, flux[f], mesh.border(mesh.outside[f]).outlet ? 0 : area * there};
  });
  const double back = processor.sum(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    return mesh.is_of(f, number) && mesh.border(mesh.outside[f]).outlet && flux[f] < 0 ? -flux[f] : 0.0;
  });
  const double wall = processor.max(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) {
    if (!mesh.is_of(f, number) || mesh.border(mesh.outside[f]).outlet) return 0.0;
    const Vector3 own = vector_at(u, mesh.inside[f]);
    return norm(mesh.border_velocity(f, own) - own) * norm(vector_at(mesh.area, f)) / mesh.coefficient[f] / viscosity;
  });
  Exchanges& all = solver.exchanges();
  const auto [x, y, z, area, out, pressure, returned] =
      all.sum<7>({force.x, force.y, force.z, sums.x, sums.y, sums.z, back});
  return {area, out, returned, area > 0 ? pressure / area : 0, std::sqrt(all.max(wall)), {x, y, z}};
}

double largest_divergence(FlowSolver& solver) {
  const FlowMesh::View mesh = solver.mesh();
  const double* flux = solver.flux();
  const double mine = solver.exchanges().processor().max(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k];
      sum += mesh.inside[f] == i ? flux[f] : -flux[f];
    }
    return std::fabs(sum) / mesh.volume[i];
  });
  return solver.exchanges().max(mine);
}

double kinetic_energy(FlowSolver& solver) {
  const FlowMesh::View mesh = solver.mesh();
  const double* u = solver.velocity();
  const double mine = solver.exchanges().processor().sum(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const Vector3 v = vector_at(u, i);
    return 0.5 * mesh.volume[i] * dot(v, v);
  });
  return solver.exchanges().sum<1>({mine})[0];
}

double velocity_error(FlowSolver& solver, const std::vector<Vector3>& exact) {
  std::vector<double> values(3 * exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) set_vector(values.data(), static_cast<std::int64_t>(i), exact[i]);
  apps::Array<double> there(solver.exchanges().processor(), static_cast<std::int64_t>(values.size()));
  there.assign(values);
  return std::sqrt(mean_square(solver, solver.velocity(), there.data()));
}

}  // namespace flow
