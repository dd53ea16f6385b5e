#include "apps/navier_stokes/ending.hpp"

#include <cmath>
#include <cstdio>

#include "apps/navier_stokes/solver/monitor.hpp"

namespace flow {
namespace {

// No flow of these cases is so fast on average; one that blows up is soon.
constexpr double most_growth = 4;

std::string rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string at_step(std::int64_t step) { return " at step " + std::to_string(step); }

RunEnding ending_of_solve(FlowSolver& solver, const char* what, const SolverResult& result, double speed) {
  if (result.end == SolverEnd::solved) return {};
  if (result.end == SolverEnd::broken) return blown_up(std::string("the ") + what + " is not finite", solver.steps());
  RunEnding growth = ending_of_growth(solver, speed);  // which is why it is not solved
  if (!growth.is_result()) return growth;
  return {"unconverged", "the flow is unconverged" + at_step(solver.steps()) + ": the " + what + " has a residual of " +
                             rounded(result.residual) + " after " + std::to_string(result.iterations) +
                             " iterations, of at most " + std::to_string(solver.options().iterations) +
                             " (--iterations)"};
}

}  // namespace

RunEnding blown_up(const std::string& what, std::int64_t step) {
  return {"blown_up", "the flow has blown up" + at_step(step) + ": " + what + ": take a smaller time step"};
}

RunEnding ending_of_growth(FlowSolver& solver, double speed) {
  const double mean = mean_speed(solver);
  if (mean <= most_growth * speed) return {};
  return blown_up("its mean speed is " + rounded(mean) + ", where the greatest is about " + rounded(speed),
                  solver.steps());
}

RunEnding ending_of_step(FlowSolver& solver, const StepReport& report, double speed) {
  RunEnding ending = ending_of_solve(solver, "velocity", report.momentum, speed);
  if (ending.is_result()) ending = ending_of_solve(solver, "pressure", report.pressure, speed);
  return ending.is_result() ? ending_of_solve(solver, "scalar", report.scalar, speed) : ending;
}

double expected_y_plus(double reynolds, double distance) {
  const double friction = reynolds < 5e5 ? 0.664 / std::sqrt(reynolds) : 0.026 / std::pow(reynolds, 1.0 / 7);
  return distance * reynolds * std::sqrt(friction / 2);
}

std::string resolution_note(double y_plus, double most_face_reynolds) {
  if (most_face_reynolds == 0 || y_plus * y_plus <= most_face_reynolds) return "";
  return "note: the mesh cannot resolve this flow: y+ of the cells at walls will be about " + rounded(y_plus) +
         ", and " + rounded(std::sqrt(most_face_reynolds)) + " is the most that counts as resolved (--face-reynolds)\n";
}

RunEnding ending_of_resolution(FlowSolver& solver, double most_face_reynolds) {
  const double found = largest_face_reynolds(solver);
  if (most_face_reynolds == 0 || found <= most_face_reynolds) return {};
  return {"unresolved", "the flow is unresolved: the Reynolds number of the velocity difference at a face is " +
                            rounded(found) + ", more than " + rounded(most_face_reynolds) +
                            ": take more cells or a smaller Reynolds number, or allow more (--face-reynolds)"};
}

}  // namespace flow
