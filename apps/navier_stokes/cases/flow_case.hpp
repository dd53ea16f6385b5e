#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/navier_stokes/mesh/local_mesh.hpp"
#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// A flow to compute: lengths, speeds and densities are in units of the case, so that the viscosity is 1 / Reynolds
// number.
struct FlowCase {
  CellList mesh;
  BoundaryAt boundary_at;
  std::function<Vector3(const Vector3&)> start;  // the velocity at the beginning
  double speed = 1;                              // about the greatest, for the time step
  double time = 1;                               // at which the flow is of interest
  double reynolds = 100;
  std::function<Vector3(const Vector3&, double time)> exact;  // the velocity if it is known; else empty
};

struct CaseWishes {
  std::string name;
  std::int64_t cells = 0;  // about so many in all; 0: as many as the case has by default
  std::string shape = "even";
  double reynolds = 0;  // 0: the default of the case
};

std::vector<std::string> case_names();
std::vector<std::string> shape_names();
// Throws invalid_input.
FlowCase flow_case(const CaseWishes& wishes);

}  // namespace flow
