#pragma once

#include <cstdio>
#include <filesystem>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// A table with a line for every recorded step: time, change of the velocity in a unit of time, iterations, and
// the force on the body.
class History {
 public:
  struct Line {
    std::int64_t step = 0;
    double time = 0, change = 0;
    StepReport report;
    Vector3 force;
  };

  // Lines up to step `kept` that are there are kept; -1: a new file. Throws io.
  History(const std::filesystem::path& file, std::int64_t kept);
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  ~History();

  // The line is in the file on return, for those who look at a run.
  void add(const Line& line);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace flow
