#include "apps/navier_stokes/output/history.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <waywiser/base/error.hpp>

#include "apps/navier_stokes/output/durable_file.hpp"

namespace flow {
namespace {

const char* const columns =
    "step,time,change,momentum_iterations,pressure_iterations,momentum_residual,pressure_residual,force_x,force_y,"
    "force_z\n";

}  // namespace

History::History(const std::filesystem::path& file, std::int64_t kept) {
  std::string text = columns;
  if (kept >= 0 && std::filesystem::exists(file)) {
    std::istringstream lines(read_file(file));
    std::string line;
    // Not the head, and not a line that was cut off when the run was killed.
    const auto whole = std::ranges::count(std::string_view(columns), ',');
    while (std::getline(lines, line)) {
      const std::int64_t step = std::atoll(line.c_str());
      if (step > 0 && step <= kept && std::ranges::count(line, ',') == whole) text += line + "\n";
    }
  }
  write_durably(file, text);
  file_ = std::fopen(file.c_str(), "a");
  if (file_ == nullptr) throw waywiser::Error(waywiser::ErrorKind::io, "cannot write " + file.string());
}

History::~History() { std::fclose(file_); }

void History::add(const Line& line) {
  const SolverResult &momentum = line.report.momentum, &pressure = line.report.pressure;
  std::fprintf(file_, "%lld,%.12g,%.6e,%d,%d,%.3e,%.3e,%.9e,%.9e,%.9e\n", static_cast<long long>(line.step), line.time,
               line.change, momentum.iterations, pressure.iterations, momentum.residual, pressure.residual,
               line.force.x, line.force.y, line.force.z);
  std::fflush(file_);
}

}  // namespace flow
