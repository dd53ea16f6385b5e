#include "apps/navier_stokes/output/progress.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<long>(std::ceil(seconds));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

}  // namespace

std::string progress_line(std::int64_t step, std::int64_t steps, double rate) {
  constexpr std::int64_t width = 20;
  const auto filled = static_cast<std::size_t>(width * step / steps);
  std::string line = "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
  line += std::to_string(100 * step / steps) + " %, step " + std::to_string(step) + " of " + std::to_string(steps);
  if (rate > 0 && step < steps) line += ", " + duration(static_cast<double>(steps - step) / rate) + " left";
  return line;
}

Progress::Progress(bool shown, std::int64_t first, std::int64_t steps)
    : shown_(shown), terminal_(::isatty(STDERR_FILENO) != 0), first_(first), begun_(Exchanges::now()) {
  if (steps > 0) tenth_ = 10 * first / steps;
}

Progress::~Progress() {
  if (shown_ && terminal_) std::fputs("\n", stderr);
}

void Progress::at(std::int64_t step, std::int64_t steps) {
  if (!shown_ || steps <= 0) return;
  const double now = Exchanges::now();
  const bool due = terminal_ ? now - drawn_ > 0.1 || step == steps : 10 * step / steps > tenth_;
  if (!due) return;
  drawn_ = now;
  tenth_ = 10 * step / steps;
  const double rate = static_cast<double>(step - first_) / (now - begun_);
  std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", progress_line(step, steps, rate).c_str());
}

}  // namespace flow
