#pragma once

#include <string>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// How a run has ended: "complete", "steady"; or with a reason, why its flow is no result: "blown_up", "unconverged" or
// "unresolved".
struct RunEnding {
  std::string name = "complete", reason;

  bool is_result() const { return reason.empty(); }
  // Whether the flow itself is none, so that nothing of it is kept.
  bool is_garbage() const { return name == "blown_up" || name == "unconverged"; }
};

// Collective, and the same at all ranks, since they have the same sums. Of a flow whose greatest speed is about
// `speed`: it has blown up if the mean one is many times as great.
RunEnding ending_of_growth(FlowSolver& solver, double speed);
// Of its last step.
RunEnding ending_of_step(FlowSolver& solver, const StepReport& report, double speed);
RunEnding blown_up(const std::string& what, std::int64_t step);
// Before the flow is known: y+ of cells at so many lengths from a wall, by the friction of a flat plate of one length:
// laminar up to a Reynolds number of 5e5 (Blasius 1908: 0.664 / sqrt(Re)), else turbulent (White, Viscous Fluid Flow,
// 1991: 0.026 / Re^(1/7)).
double expected_y_plus(double reynolds, double distance);
// A line if its square is more than a face's Reynolds number may be, else nothing.
std::string resolution_note(double y_plus, double most_face_reynolds);
// Collective: of a flow that is through.
RunEnding ending_of_resolution(FlowSolver& solver, double most_face_reynolds);

}  // namespace flow
