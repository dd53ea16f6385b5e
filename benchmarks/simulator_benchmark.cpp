// All-reduce on thousands of simulated GPUs: seconds and memory of the simulator itself, over the number of GPUs.
// Limits: the tree on 24,000 GPUs in 60 s and 4 GB.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>

#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/event_loop.hpp"

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

class Nobody : public Listener {
 public:
  void wake(std::uint64_t) override {}
};

// Random flows over up to four of as many links. A flow that starts or ends changes the rates of some others: how many
// rates are computed for each flow is what the simulator's work grows with.
void random_flows(std::size_t flows) {
  std::mt19937 chance(static_cast<unsigned>(flows));
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(chance);
  };
  EventLoop engine;
  for (std::size_t i = 0; i < flows; ++i) engine.network().add_link(between(1e8, 1e10));
  Nobody nobody;
  for (std::size_t i = 0; i < flows; ++i) {
    std::vector<Use> uses;
    for (std::size_t hop = chance() % 4 + 1; hop > 0; --hop) uses.push_back({static_cast<LinkId>(chance() % flows), 1});
    const double bytes = between(1e6, 1e9);
    engine.transfer(uses, no_cap, bytes, between(0, 0.5), nobody, i);
  }
  const auto start = std::chrono::steady_clock::now();
  engine.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto each = static_cast<double>(flows);
  std::printf("%6zu random flows and links  %7.2f s  %6.1f us and %4.1f rates a flow\n", flows, seconds,
              1e6 * seconds / each, static_cast<double>(engine.network().flows_filled()) / each);
  std::fflush(stdout);
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
  for (const std::size_t flows : {1000u, 4000u, 16000u, 64000u}) random_flows(flows);
  if (seconds <= most_seconds && memory <= most_gib) return 0;
  std::printf("over the limit of %.0f s and %.0f GiB\n", most_seconds, most_gib);
  return 1;
}
