#pragma once

#include "apps/navier_stokes/run.hpp"

namespace flow {

// How long the steps of a run are: all alike, shortened so that a whole number of them ends at the time; or each by the
// Courant number of the flow. What a step is depends on the flow and the last step alone, so that a run that is resumed
// takes the same ones.
class StepLengths {
 public:
  // `usual`: the step by the options and the case. `end`: of the run; 0: none.
  StepLengths(const RunOptions& options, double usual, double end);

  double first() const { return first_; }
  // Collective: of the next step.
  double next(FlowSolver& solver) const;
  // Whether the run is at its end, also before its first step; whether it will be after a step of the present length.
  bool at_end(const FlowSolver& solver) const { return ends(solver, 0); }
  bool ends_with_next(const FlowSolver& solver) const { return ends(solver, 1); }
  // So many steps there will be, about, if all are as the last.
  std::int64_t about(const FlowSolver& solver) const;

 private:
  double left(const FlowSolver& solver) const { return end_ - solver.time(); }
  bool ends(const FlowSolver& solver, int steps_more) const;

  const bool adaptive_;
  const double courant_, most_, end_;
  const std::int64_t steps_;
  double first_;
};

// When frames of a time series are due: at even shares of the time, or of the steps.
class Frames {
 public:
  Frames(std::int64_t frames, std::int64_t steps, double end, const FlowSolver& solver);
  // After a step.
  bool is_due(const FlowSolver& solver);

 private:
  std::int64_t share(const FlowSolver& solver) const;

  const std::int64_t frames_, steps_;
  const double end_;
  std::int64_t seen_;
};

}  // namespace flow
