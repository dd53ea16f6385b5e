#pragma once

#include <filesystem>
#include <string>

#include "apps/navier_stokes/cases/flow_case.hpp"
#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

struct RunOptions {
  CaseWishes wishes;
  double time = 0;         // 0: that of the case
  std::int64_t steps = 0;  // 0: as many as the time needs
  double time_step = 0;    // 0: by the Courant number
  double courant = 0.4;
  bool adaptive = false;  // each step by the Courant number of the flow
  double tolerance = 1e-6;
  double memory = 0;              // as FlowOptions has it; 0: that of the case
  int iterations = 500;           // of a linear solver in a step, at most
  double face_reynolds = 500;     // the greatest that counts as resolved; 0: any
  int corrections = -1;           // -1: one if a face is not orthogonal, else none
  std::int64_t whole_level = -1;  // as FlowOptions has it; -1: 131072 on GPUs, 1024 on hosts
  double steady = 0;              // ends when the velocity changes less than this a unit of time
  std::string exchange;           // "default", "auto" or a variant
  double tune_seconds = 0.05;     // for each exchange, with "auto"
  int threads = 1;
  std::filesystem::path folder;  // for results; empty: none
  std::int64_t frames = 1;       // of the time series
  std::int64_t record = 10;      // steps between lines of history.csv
  double average_from = never;   // of means over time
  std::int64_t checkpoint = 0;   // steps between checkpoints; 0: none
  bool resume = false;
  bool progress = true;
  std::int64_t untimed = 1;  // steps at the beginning that do not count in times
};

struct RunResult {
  std::string report;  // as JSON, for rank 0
  std::string reason;  // why the flow is no result; empty: it is one
};

// Collective: computes a case and writes its results. Throws waywiser::Error.
RunResult run(waywiser::Group& group, const RunOptions& options);

}  // namespace flow
