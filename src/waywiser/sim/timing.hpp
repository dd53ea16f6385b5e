#pragma once

#include <vector>

#include "waywiser/measure/profile.hpp"
#include "waywiser/sim/models.hpp"
#include "waywiser/sim/trace.hpp"

namespace waywiser::sim {

// A path from one spot to another, timed with the operations as measure/ defines them.
struct TimedTrial {
  Path path;
  Spot from, to;
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  // For `loaded`: all pairs that move at once; the time is that of the first.
  std::vector<std::pair<Spot, Spot>> pairs;
};

struct Timed {
  Seconds seconds = 0;      // per transfer
  Seconds cpu_seconds = 0;  // of the issuing CPU, per transfer
  double bytes_moved = 0;   // over all flows of the run
  Seconds turn = 0;         // of a GPU that two processes share
};

// In a fresh world. Streams run long enough for a steady rate: the time of a transfer is the slope between a short and
// a long run of the same window, so that filling and draining the pipeline does not count. Throws unavailable with the
// model's reason.
Timed simulate(const NodeModel& node, const ClusterSpec& cluster, const TimedTrial& trial, Trace* trace = nullptr);

}  // namespace waywiser::sim
