#pragma once

#include "apps/navier_stokes/solver/momentum_solver.hpp"

namespace flow {

struct ScalarOptions {
  double diffusivity = 0;  // 0: there is no scalar
  double schmidt = 0.7;    // the viscosity of eddies over their diffusivity
  double start = 0;
};

// A scalar that the flow carries and that does not act on it: a temperature, a concentration. Convection by linear
// interpolation and the diffusion of eddies by Adams-Bashforth, the rest of diffusion by Crank-Nicolson, as the
// velocity. What enters through a border without a value has that of its cell.
class ScalarTransport {
 public:
  // Collective.
  ScalarTransport(Exchanges& exchanges, const FlowMesh& flow_mesh, const LocalMesh& mesh, const ScalarOptions& options,
                  double step);

  // Collective: of owned cells, and the explicit terms of the step before.
  void set(const std::vector<double>& values, const std::vector<double>& old_explicit);
  void set_time_step(double step);
  // Collective: `flux` and `eddy` (nullptr: none) are those of the beginning of the step, `ratio` as the flow has it.
  SolverResult step(const double* flux, const double* eddy, double ratio, double tolerance, int iterations);

  std::vector<double> values() const;
  std::vector<double> old_explicit() const;

 private:
  Exchanges& exchanges_;
  const FlowMesh& flow_mesh_;
  const ScalarOptions options_;
  double step_;
  Matrix matrix_;
  MomentumSolver solver_;
  // The solver's vectors, of which the first component counts; then gradients, and one value a face and a cell.
  apps::Array<double> values_, right_, gradient_, at_faces_, explicit_, old_explicit_;
  std::size_t values_ghosts_, gradient_ghosts_;
};

}  // namespace flow
