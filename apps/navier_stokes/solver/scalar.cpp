#include "apps/navier_stokes/solver/scalar.hpp"

#include "apps/navier_stokes/solver/operators.hpp"

namespace flow {
namespace {

// What flows through a face into its outside cell, without the part that is implicit.
struct ScalarFlow {
  FlowMesh::View mesh;
  const double *values, *gradient, *flux, *eddy;
  double diffusivity, schmidt;

  APPS_CALLABLE double operator()(std::int64_t f) const {
    const Index in = mesh.inside[f], out = mesh.outside[f];
    const double own = values[3 * static_cast<std::int64_t>(in)], small = eddy == nullptr ? 0 : eddy[in] / schmidt;
    const Vector3 correction = vector_at(mesh.correction, f);
    if (out < 0) {
      const BoundaryCondition& condition = mesh.border(out);
      if (!condition.has_scalar) return -flux[f] * own;
      const double slanted = dot(vector_at(gradient, in), correction);
      return -flux[f] * condition.scalar + (diffusivity + small) * slanted +
             small * mesh.coefficient[f] * (condition.scalar - own);
    }
    const double w = mesh.weight[f], other = values[3 * static_cast<std::int64_t>(out)];
    const Vector3 mean = mesh.mean(f, gradient);
    const double there = w * own + (1 - w) * other + dot(mean, vector_at(mesh.skew, f));
    const double mixed = eddy == nullptr ? 0 : (w * eddy[in] + (1 - w) * eddy[out]) / schmidt;
    return -flux[f] * there + (diffusivity + mixed) * dot(mean, correction) +
           mixed * mesh.coefficient[f] * (other - own);
  }
};

// `gradient` is of owned cells, and needs the neighbours' afterwards.
void compute_scalar_gradient(apps::Processor& processor, const FlowMesh::View& mesh, const double* values,
                             double* gradient) {
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    Vector3 sum;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k], out = mesh.outside[f];
      if (out < 0 && !mesh.border(out).has_scalar) continue;
      const std::int64_t cell = out == i ? mesh.inside[f] : out;
      const double other = out < 0 ? mesh.border(out).scalar : values[3 * cell];
      sum += (other - values[3 * i]) * vector_at(mesh.scalar_slope, k);
    }
    set_vector(gradient, i, sum);
  });
}

// terms = the sum of what flows into each cell.
void add_scalar_flows(apps::Processor& processor, const ScalarFlow& through, double* at_faces, double* terms) {
  const FlowMesh::View mesh = through.mesh;
  processor.for_each(mesh.faces, [=] APPS_CALLABLE(std::int64_t f) { at_faces[f] = through(f); });
  compute_divergence(processor, mesh, 1, at_faces, terms);
}

}  // namespace

ScalarTransport::ScalarTransport(Exchanges& exchanges, const FlowMesh& flow_mesh, const LocalMesh& mesh,
                                 const ScalarOptions& options, double step)
    : exchanges_(exchanges),
      flow_mesh_(flow_mesh),
      options_(options),
      step_(step),
      matrix_(exchanges.processor(), scalar_rows(mesh)),
      solver_(exchanges, exchanges.partition_of(mesh.cells, mesh.neighbors),
              {flow_mesh.view().volume, matrix_.view(), step * options.diffusivity / 2}),
      values_(exchanges.processor(), 3 * mesh.cells),
      right_(exchanges.processor(), 3 * mesh.owned),
      gradient_(exchanges.processor(), 3 * mesh.cells),
      at_faces_(exchanges.processor(), static_cast<std::int64_t>(mesh.faces.size())),
      explicit_(exchanges.processor(), mesh.owned),
      old_explicit_(exchanges.processor(), mesh.owned) {
  const auto partition = exchanges.partition_of(mesh.cells, mesh.neighbors);
  values_ghosts_ = exchanges.add(partition, values_, 3);
  gradient_ghosts_ = exchanges.add(partition, gradient_, 3);
}

void ScalarTransport::set(const std::vector<double>& values, const std::vector<double>& old_explicit) {
  std::vector<double> wide(static_cast<std::size_t>(values_.size()), 0);
  for (std::size_t i = 0; i < values.size(); ++i) wide[3 * i] = values[i];
  values_.assign(wide);
  old_explicit_.assign(old_explicit);
  exchanges_.fill(values_ghosts_);
}

std::vector<double> ScalarTransport::values() const {
  std::vector<double> values;
  const std::vector<double> wide = values_.values();
  for (std::int64_t i = 0; i < flow_mesh_.view().owned; ++i) values.push_back(wide[at(3 * i)]);
  return values;
}

std::vector<double> ScalarTransport::old_explicit() const { return old_explicit_.values(); }

void ScalarTransport::set_time_step(double step) {
  step_ = step;
  solver_.set_share(step * options_.diffusivity / 2);
}

SolverResult ScalarTransport::step(const double* flux, const double* eddy, double ratio, double tolerance,
                                   int iterations) {
  apps::Processor& processor = exchanges_.processor();
  const FlowMesh::View mesh = flow_mesh_.view();
  compute_scalar_gradient(processor, mesh, values_.data(), gradient_.data());
  exchanges_.fill(gradient_ghosts_);
  add_scalar_flows(processor,
                   {mesh, values_.data(), gradient_.data(), flux, eddy, options_.diffusivity, options_.schmidt},
                   at_faces_.data(), explicit_.data());
  const Matrix::View matrix = matrix_.view();
  const double step = step_, share = step * options_.diffusivity / 2;
  const double *terms = explicit_.data(), *old = old_explicit_.data();
  double *b = right_.data(), *values = values_.data();
  // Half of diffusion at the beginning of the step; given values count for both halves.
  processor.for_each(mesh.owned, [=] APPS_CALLABLE(std::int64_t i) {
    const double own = values[3 * i];
    double diffused = matrix.neighbor_vectors(i, values).x - matrix.diagonal[i] * own;
    for (Index k = mesh.first_face[i]; k < mesh.first_face[i + 1]; ++k) {
      const Index f = mesh.faces_of_cell[k], out = mesh.outside[f];
      if (out < 0 && mesh.border(out).has_scalar) diffused += 2 * mesh.coefficient[f] * mesh.border(out).scalar;
    }
    const double carried = (1 + ratio / 2) * terms[i] - ratio / 2 * old[i];
    set_vector(b, i, {mesh.volume[i] * own + step * carried + share * diffused, 0, 0});
  });
  const SolverResult result = solver_.solve(values, values_ghosts_, b, tolerance, iterations);
  exchanges_.fill(values_ghosts_);
  swap(explicit_, old_explicit_);
  return result;
}

}  // namespace flow
