#pragma once

#include <functional>
#include <optional>

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

// The root mean square of the velocity, over the volume.
double mean_speed(FlowSolver& solver);
// The greatest Reynolds number of a face: the difference of the velocities on both sides, a wall's or an inlet's
// included, times their distance, divided by the viscosity. It is about 1 where the smallest eddies are resolved; at a
// wall it is the square of the first cell's distance in viscous lengths (y+).
double largest_face_reynolds(FlowSolver& solver);
// All values, if those of all ranks are finite.
std::optional<FlowValues> finite_values(FlowSolver& solver);

// The force of the flow on all borders that belong to a body.
Vector3 force_on_body(FlowSolver& solver);
// The greatest, for a step of unit length: half of the fluxes in and out of a cell over its volume; and what eddies
// exchange with its neighbours, which is explicit too.
double courant_number(FlowSolver& solver);
// Of one boundary; density 1.
struct BoundaryFigures {
  double area = 0, flow_out = 0;
  double back = 0;      // what an outlet takes in, of itself
  double pressure = 0;  // the mean
  double y_plus = 0;    // the greatest of the first cells
  Vector3 force;        // on it
};
BoundaryFigures boundary_figures(FlowSolver& solver, int number);
// The greatest sum of fluxes out of a cell, divided by its volume.
double largest_divergence(FlowSolver& solver);
// Of the velocity squared over two, times the volume.
double kinetic_energy(FlowSolver& solver);
// The root mean square error of the velocity, over the volume.
double velocity_error(FlowSolver& solver, const std::vector<Vector3>& exact);

}  // namespace flow
