#include "apps/navier_stokes/step_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/navier_stokes/solver/monitor.hpp"

namespace flow {
namespace {

// A step stays as it is while the Courant number is between 0.8 of what was asked for and that, since each new length
// costs the velocity's solver a sum over all ranks; it grows slowly, since an explicit method has a memory.
constexpr double least_share = 0.8, aimed_share = 0.9, step_growth = 1.1;
constexpr double step_rounding = 1e-9;  // of a step

// So many steps of at most `step` reach `time`; at least one.
std::int64_t steps_to(double time, double step) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(time / step - step_rounding)));
}

}  // namespace

StepLengths::StepLengths(const RunOptions& options, double usual, double end)
    : adaptive_(options.adaptive),
      courant_(options.courant),
      most_(options.time_step > 0 ? options.time_step : 1e300),
      end_(options.steps > 0 ? 0 : end),
      steps_(options.steps),
      first_(usual) {
  if (end_ > 0) first_ = end_ / static_cast<double>(steps_to(end_, first_));
}

double StepLengths::next(FlowSolver& solver) const {
  if (!adaptive_) return first_;
  double step = solver.last_step() > 0 ? solver.last_step() : first_;
  const double now = courant_number(solver) * step;
  if (now > courant_ || (now > 0 && now < least_share * courant_))
    step = std::min(step * aimed_share * courant_ / now, step_growth * step);
  step = std::min(step, most_);
  if (end_ <= 0) return step;
  const double rest = left(solver);
  return rest < 10 * step ? rest / static_cast<double>(steps_to(rest, step)) : step;
}

bool StepLengths::ends(const FlowSolver& solver, int steps_more) const {
  if (steps_ > 0) return solver.steps() + steps_more >= steps_;
  const double step = solver.options().time_step;
  return left(solver) - steps_more * step <= step_rounding * step;
}

std::int64_t StepLengths::about(const FlowSolver& solver) const {
  if (steps_ > 0) return steps_;
  const double step = solver.options().time_step;
  return solver.steps() + (left(solver) <= step_rounding * step ? 0 : steps_to(left(solver), step));
}

Frames::Frames(std::int64_t frames, std::int64_t steps, double end, const FlowSolver& solver)
    : frames_(std::max<std::int64_t>(frames, 1)), steps_(steps), end_(end), seen_(share(solver)) {}

std::int64_t Frames::share(const FlowSolver& solver) const {
  if (steps_ > 0) return solver.steps() * frames_ / steps_;
  return static_cast<std::int64_t>(static_cast<double>(frames_) * (solver.time() / end_ + step_rounding));
}

bool Frames::is_due(const FlowSolver& solver) {
  const std::int64_t now = share(solver);
  return std::exchange(seen_, now) != now;
}

}  // namespace flow
