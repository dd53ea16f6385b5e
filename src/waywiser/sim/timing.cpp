#include "waywiser/sim/timing.hpp"

#include <algorithm>

#include "waywiser/measure/connections.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/rotation.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/sim/runner.hpp"

namespace waywiser::sim {
namespace {

constexpr int window = 64;
constexpr Bytes most_chunks = 512;  // of a stream that is simulated chunk by chunk

struct Direction {
  Path path;
  Spot from, to;
};

std::vector<Direction> directions(const TimedTrial& trial) {
  std::vector<Direction> found{{trial.path, trial.from, trial.to}};
  if (trial.operation == Operation::bidirectional) {
    Path back = for_pair(trial.path, trial.path.destination, trial.path.source);
    if (back.has("device")) back.parameters["device"] = turned_device(back.parameter("device"));
    found.push_back({std::move(back), trial.to, trial.from});
  }
  if (trial.operation != Operation::loaded) return found;
  for (const auto& [from, to] : trial.pairs) {
    if (from == trial.from && to == trial.to) continue;
    found.push_back({for_pair(trial.path, parse_place(from.device), parse_place(to.device)), from, to});
  }
  return found;
}

// Seconds until the first direction has moved `transfers`.
Seconds run(const NodeModel& node, const ClusterSpec& cluster, const TimedTrial& trial, int transfers, Trace* trace,
            Timed& timed) {
  World world(node, cluster);
  Runner runner(world, trace);
  Seconds end = 0;
  const std::vector<Direction> ways = directions(trial);
  const int slots = rotation(trial.operation, slot_stride(trial.bytes)).slots;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Direction& way = ways[i];
    const Program made = program({world, way.path, way.from, way.to, trial.bytes, static_cast<int>(i), slots});
    runner.add(made, trial.bytes, transfers);
    timed.turn = made.turn;
    if (timed.cpu_seconds == 0) timed.cpu_seconds = made.issue + made.issue_chunk + made.busy;
  }
  runner.run();
  for (std::size_t i = 0; i < ways.size(); ++i) end = std::max(end, runner.ended(i));
  timed.bytes_moved = world.engine().bytes_moved();
  return trial.operation == Operation::loaded ? runner.ended(0) : end;
}

int length(const TimedTrial& trial) {
  Bytes chunk = trial.bytes;
  if (trial.path.has("chunk")) chunk = trial.path.bytes("chunk", 1, Bytes{1} << 40);
  if (trial.path.mechanism == "ucx") chunk = Bytes{512} << 10;
  const Bytes chunks = std::max<Bytes>(1, trial.bytes / std::max<Bytes>(1, chunk));
  return static_cast<int>(std::clamp<Bytes>(most_chunks / chunks, 3, 24));
}

// Two processes with kernels on one GPU: a message starts when the answer to the last one has come back; two streams
// take the GPU from each other; one stream keeps it for a window.
double turns(Operation operation) {
  if (operation == Operation::latency) return 1;
  return operation == Operation::bidirectional ? 2 : 1.0 / window;
}

}  // namespace

Timed simulate(const NodeModel& node, const ClusterSpec& cluster, const TimedTrial& trial, Trace* trace) {
  Timed timed;
  if (trial.operation == Operation::latency) {
    timed.seconds = run(node, cluster, trial, 1, trace, timed);
  } else {
    const int many = length(trial), few = many / 3;
    const Seconds first = run(node, cluster, trial, few, nullptr, timed);
    const Seconds all = run(node, cluster, trial, many, trace, timed);
    timed.seconds = (all - first) / (many - few);
    const Seconds once = all - timed.seconds * many;  // filling, draining, the finish: paid once a window
    if (once > 0) timed.seconds += once / window;
  }
  timed.seconds += timed.turn * turns(trial.operation);
  if (trial.from.node == trial.to.node) timed.seconds *= node.curves().ratio(trial.path, trial.operation, trial.bytes);
  return timed;
}

}  // namespace waywiser::sim
