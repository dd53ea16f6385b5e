#pragma once

#include <array>
#include <memory>
#include <optional>

#include "apps/navier_stokes/multigrid/multigrid.hpp"
#include "apps/navier_stokes/solver/eddies.hpp"
#include "apps/navier_stokes/solver/flow_means.hpp"
#include "apps/navier_stokes/solver/flow_mesh.hpp"
#include "apps/navier_stokes/solver/momentum_solver.hpp"
#include "apps/navier_stokes/solver/preconditioned_cg.hpp"
#include "apps/navier_stokes/solver/scalar.hpp"

namespace flow {

constexpr double never = 1e300;

struct FlowOptions {
  double viscosity = 0.01;  // kinematic
  Vector3 force;            // on a unit of mass
  double time_step = 0.01;
  double tolerance = 1e-6;  // of the pressure, relative to the right-hand side; of the velocity a thousandth of it
  double memory = 0.2;      // the time in which the flux forgets how it differs from the velocity in the cells
  int corrections = 0;      // more solves for the pressure in a step, for faces that are not orthogonal
  std::int64_t whole_level = 1024;  // cells of a level of the multigrid that each rank computes whole
  int iterations = 500;             // of a linear solver in a step, at most
  double average_from = never;      // means over time are of the steps that begin then or later
  EddyModel eddies;
  ScalarOptions scalar;
};

struct StepReport {
  SolverResult momentum, pressure, scalar;
};

// All that the next step depends on, in host memory, for owned cells and all faces of this rank.
struct FlowValues {
  std::vector<double> velocity, pressure, old_pressure, old_explicit;  // of cells
  std::vector<double> scalar, old_scalar_explicit;                     // of cells, or empty
  std::vector<double> means;                                           // of cells, as FlowMeans has them, or empty
  std::vector<double> flux, skew_flux;                                 // of faces
  double time = 0, old_step = 0, end_share = 0;                        // of the step before: its length; FlowSolver's
  double averaged = 0;                                                 // the time of the means
  std::int64_t steps = 0;

  static constexpr std::array cells = {&FlowValues::velocity,     &FlowValues::pressure,
                                       &FlowValues::old_pressure, &FlowValues::old_explicit,
                                       &FlowValues::scalar,       &FlowValues::old_scalar_explicit,
                                       &FlowValues::means};
  static constexpr std::array faces = {&FlowValues::flux, &FlowValues::skew_flux};
};

// Incompressible flow of density 1 on one rank's part of a mesh: velocity and pressure in the cells, volume flux
// through the faces.
//
// A step (fractional, second order, of any length; Kim and Choi 2000 on collocated unstructured meshes): convection and
// the non-orthogonal part of diffusion by Adams-Bashforth, the rest of diffusion by Crank-Nicolson, both with the old
// pressure gradient; then the gradient is taken out again, the velocity goes to the faces, and the pressure makes
// its flux free of divergence. So the flux sees the compact pressure difference across a face, as that of Rhie and Chow
// (1983) does. What the flux had beyond the interpolated velocity is kept for a while: if each step began
// with the interpolated velocity alone, its errors on triangles would add up the faster the shorter the steps are.
//
// The pressure of a step is that of its middle. At its end it is extrapolated from the last two, but for the first
// steps: a flow that starts at once has the pressure of a blow in its first step.
class FlowSolver {
 public:
  // Collective. `singular`: no rank has an outlet.
  FlowSolver(Exchanges& exchanges, const LocalMesh& mesh, const FlowOptions& options, bool singular);

  // Collective: the velocity at the centers of the owned cells; the flux is its interpolation.
  void start_with(const std::vector<Vector3>& velocity);
  FlowValues values() const;
  // Collective.
  void continue_with(const FlowValues& values);

  // Collective: of the next steps.
  void set_time_step(double step);
  StepReport step();
  // The pressure at time(), with its ghosts, and its gradient in owned cells.
  const double* pressure_at_end();
  const double* gradient_at_end();
  // In host memory.
  std::vector<double> owned_values(const double* of_cells);

  double time() const { return time_; }
  double last_step() const { return old_step_; }  // 0: there was none
  std::int64_t steps() const { return steps_; }
  const Multigrid& multigrid() const { return multigrid_; }
  FlowMesh::View mesh() const { return mesh_.view(); }
  const double* velocity() const { return velocity_.data(); }
  const double* flux() const { return flux_.data(); }
  // Of the beginning of the last step, in owned cells; nullptr: there are no eddies.
  const double* eddy_viscosity() const { return has_eddies() ? eddy_.data() : nullptr; }
  // nullptr: none are taken.
  const FlowMeans* means() const { return means_ ? &*means_ : nullptr; }
  const FlowOptions& options() const { return options_; }
  Exchanges& exchanges() { return exchanges_; }

 private:
  bool has_eddies() const { return options_.eddies.kind != EddyModel::Kind::none; }
  SolverResult predict_velocity(StepReport& report);
  SolverResult solve_pressure(bool last);

  Exchanges& exchanges_;
  FlowOptions options_;
  const bool singular_;
  FlowMesh mesh_;
  Matrix diffusion_, poisson_;
  Multigrid multigrid_;
  MomentumSolver momentum_solver_;
  ConjugateGradient pressure_solver_;
  // Three components: velocity and its gradient's rows, pressure gradient, explicit terms. One: pressure, face values.
  apps::Array<double> velocity_, velocity_gradient_, pressure_, pressure_gradient_, explicit_, old_explicit_, right_;
  apps::Array<double> flux_, skew_flux_, corrected_flux_, face_force_;
  apps::Array<double> old_pressure_, end_pressure_, end_gradient_, eddy_;
  std::optional<FlowMeans> means_;
  std::optional<ScalarTransport> scalar_;
  std::size_t velocity_ghosts_, velocity_gradient_ghosts_, pressure_ghosts_, pressure_gradient_ghosts_;
  std::size_t eddy_ghosts_ = 0;
  const int dimensions_;
  double time_ = 0, old_step_ = 0;  // 0: there is no step before
  double end_share_ = 0;            // of the pressure's last change from the middle of the step to its end
  std::int64_t steps_ = 0;
};

}  // namespace flow
