#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// Times of steps, at this rank. Those that time their exchanges take longer, since a GPU waits for the host then.
struct RunTimes {
  std::vector<waywiser::Seconds> steps;                           // that did not time their exchanges
  std::vector<waywiser::Seconds> timed_steps;                     // that did
  Spent spent;                                                    // of these
  std::int64_t momentum_iterations = 0, pressure_iterations = 0;  // of both

  // `spent`: nullptr if exchanges were not timed.
  void add(waywiser::Seconds step, const Spent* spent, const StepReport& report);
};

struct ReportInput {
  std::string name, shape, ending, reason;  // as RunEnding has them
  std::int64_t cells = 0, first = 0;
  double reynolds = 0, change = 0, setup_and_all = 0, density = 1, expected_y_plus = 0;
  std::vector<std::string> names;  // of boundaries
  FlowOptions flow;
  std::optional<double> error;  // of the velocity
};

// Collective: the figures of a run as JSON, the same at all ranks. A step takes as long as at the slowest rank; times
// of exchanges and reductions are means over the ranks, and contain the waits for slower ranks; shares are of the steps
// that timed them.
std::string report_json(FlowSolver& solver, Exchanges& exchanges, const RunTimes& times, const ReportInput& input);

}  // namespace flow
