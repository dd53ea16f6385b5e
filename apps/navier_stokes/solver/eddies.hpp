#pragma once

#include "apps/navier_stokes/solver/flow_mesh.hpp"

namespace flow {

// The viscosity of eddies that are smaller than the cells, for large-eddy simulations. With g the gradient of the
// velocity, S its symmetric part, and D the width of a cell, the cube root of its volume (in two dimensions the square
// root of its area):
//
// smagorinsky: (C D)^2 sqrt(2 S:S), with C = 0.17; J. Smagorinsky, Monthly Weather Review 91 (1963), 99; the value is
//   Lilly's (1967).
// wale: (C D)^2 (T:T)^(3/2) / ((S:S)^(5/2) + (T:T)^(5/4)), where T is the symmetric part of g g without its trace, with
//   C = 0.325; F. Nicoud and F. Ducros, Flow, Turbulence and Combustion 62 (1999), 183. It vanishes in a flow of pure
//   shear, and with the cube of the distance from a wall.
struct EddyModel {
  enum class Kind : std::uint8_t { none, smagorinsky, wale };
  Kind kind = Kind::none;
  double coefficient = 0;
};

// Of owned cells.
void compute_eddy_viscosity(apps::Processor& processor, const FlowMesh::View& mesh, int dimensions,
                            const EddyModel& model, const double* velocity_gradient, double* result);

}  // namespace flow
