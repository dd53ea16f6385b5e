#pragma once

#include <functional>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// Figures about a flow, of all ranks together; all functions are collective.

// The root mean square, over the volume, of the change of the velocity since remember(), divided by `seconds`.
class ChangeMonitor {
 public:
  explicit ChangeMonitor(FlowSolver& solver);
  void remember();
  double change(double seconds);

 private:
  FlowSolver& solver_;
  apps::Array<double> before_;
};

// The force of the flow on all borders that belong to a body.
Vector3 force_on_body(FlowSolver& solver);
// The greatest sum of fluxes out of a cell, divided by its volume.
double largest_divergence(FlowSolver& solver);
// Of the velocity squared over two, times the volume.
double kinetic_energy(FlowSolver& solver);
// The root mean square error of the velocity, over the volume.
double velocity_error(FlowSolver& solver, const std::vector<Vector3>& exact);

}  // namespace flow
