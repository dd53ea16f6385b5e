// All-reduce on thousands of simulated GPUs: seconds and memory of the simulator itself, over the number of GPUs.
// Limits: the tree on 24,000 GPUs in 60 s and 4 GB.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "waywiser/sim/collective_run.hpp"

using namespace waywiser;
using namespace waywiser::sim;

namespace {

constexpr double most_seconds = 60, most_gib = 4;

// From the root of the repository, where `make bench` runs.
const std::filesystem::path package = "python/waywiser";

double peak_gib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / (1 << 20);
}

double run(const NodeModel& node, int nodes, const char* algorithm) {
  ClusterSpec cluster;
  cluster.network.nodes = nodes;
  cluster.network.kind = "fat-tree";
  cluster.network.taper = 2;
  cluster.in_network_reduction = true;
  CollectiveTrial trial;
  trial.algorithm = algorithm;
  trial.bytes = 1 << 20;
  const auto start = std::chrono::steady_clock::now();
  const Ran ran = simulate(node, cluster, trial);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%6d GPUs  %-12s %9llu messages  %7.2f s  %6.2f us a message  %5.2f GiB  predicted %10.1f us\n",
              8 * nodes, algorithm, static_cast<unsigned long long>(ran.messages), seconds,
              1e6 * seconds / static_cast<double>(ran.messages), peak_gib(), 1e6 * ran.seconds);
  std::fflush(stdout);
  return seconds;
}

}  // namespace

int main() {
  const Topology machine = topology_from_json(read_json(package / "machines/hse-e.json"), "hse-e");
  const NodeModel node(machine, costs_of(machine, read_json(package / "simulator/parts.json"), "parts"));
  std::printf("all-reduce of 1 MiB, hse-e nodes, fat tree 2:1 (simulated)\n");
  for (const int nodes : {30, 100, 300, 1000}) run(node, nodes, "double_tree");
  const double seconds = run(node, 3000, "double_tree");
  const double memory = peak_gib();
  run(node, 3000, "in_network");
  run(node, 3000, "ring");
  if (seconds <= most_seconds && memory <= most_gib) return 0;
  std::printf("over the limit of %.0f s and %.0f GiB\n", most_seconds, most_gib);
  return 1;
}
