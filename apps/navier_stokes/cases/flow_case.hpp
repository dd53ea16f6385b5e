#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/navier_stokes/mesh/local_mesh.hpp"
#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// A flow to compute. Those that the program makes have lengths, speeds and densities in units of the case, so that the
// viscosity is 1 / Reynolds number; those of files are in SI units.
struct FlowCase {
  CellList mesh;
  std::vector<int> part_of;  // of each cell, if the case has it for `parts` ranks
  std::int64_t parts = 0;
  BoundaryAt boundary_at;
  std::function<Vector3(const Vector3&)> start;  // the velocity at the beginning
  double speed = 1;                              // about the greatest, for the time step
  double time = 1;                               // at which the flow is of interest
  double reynolds = 100;
  double viscosity = 0;  // kinematic
  double density = 1;
  double memory = 0.2;  // as FlowOptions has it
  double length = 1;    // of the Reynolds number
  Vector3 force;        // on a unit of mass
  EddyModel eddies;
  ScalarOptions scalar;
  std::string scalar_name;
  std::vector<std::string> names;                             // of boundaries
  std::string key;                                            // of a file: what tells it from others
  std::function<Vector3(const Vector3&, double time)> exact;  // the velocity if it is known; else empty
};

struct CaseWishes {
  std::string name;        // or a file that ends with .flow
  std::int64_t cells = 0;  // about so many in all; 0: as many as the case has by default
  std::string shape = "even";
  double reynolds = 0;  // 0: the default of the case
};

std::vector<std::string> case_names();
std::vector<std::string> shape_names();
// Throws invalid_input.
FlowCase flow_case(const CaseWishes& wishes);

}  // namespace flow
