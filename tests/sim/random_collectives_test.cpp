#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/sim/random_machines.hpp"
#include "waywiser/base/error.hpp"

// In every collective on every machine no link carries more than it can, more bytes take no less time, and
// the time is that of the last step.
namespace waywiser::sim {
namespace {

constexpr double slack = 1e-9;

struct RandomCase {
  explicit RandomCase(unsigned seed) : RandomCase(RandomMachine(seed)) {}
  explicit RandomCase(RandomMachine machine)
      : topology(machine.topology),
        node(topology, costs_of(topology)),
        cluster(machine.cluster()),
        trial(machine.trial()) {
    const auto gpus = static_cast<int>(topology.ids("gpu").size());
    if (machine.between(0, 2) == 0) trial.ranks = machine.between(1, gpus * cluster.network.nodes);
    ranks = trial.ranks == 0 ? gpus * cluster.network.nodes : trial.ranks;
    if (machine.between(0, 3) == 0) job = Bytes{1} << machine.between(10, 32);
  }

  // Nothing if the algorithm does not serve the call.
  std::optional<Ran> run(Trace* trace = nullptr) const {
    try {
      return simulate(node, cluster, trial, trace);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      return std::nullopt;
    }
  }
  std::string text() const {
    return topology.name + ", " + std::to_string(cluster.network.nodes) + " nodes, " + cluster.network.kind +
           ", domain " + std::to_string(cluster.nvlink_domain) + ", " + std::to_string(ranks) + " ranks, " +
           std::string(name(trial.operation)) + " " + trial.algorithm + " " + std::to_string(trial.bytes);
  }
  int gpus() const { return static_cast<int>(topology.ids("gpu").size()); }
  std::string gpu(int rank) const { return "gpu" + std::to_string(rank % gpus()); }

  // The sum over all hops that leave a device, or lead to it.
  double out_of(const std::string& device) const {
    return sum([&](const std::string& hop) { return hop.starts_with(device + ">"); });
  }
  double into(const std::string& device) const {
    return sum([&](const std::string& hop) { return hop.ends_with(">" + device); });
  }
  double sum(const std::function<bool(const std::string&)>& wanted) const {
    double all = 0;
    for (std::size_t i = 0; i < node.names().size(); ++i)
      if (wanted(node.names()[i])) all += node.capacities()[i];
    return all;
  }
  double ports() const {
    double all = 0;
    for (const std::string& nic : topology.ids("nic")) all += node.port_rate(nic);
    return all;
  }

  Topology topology;
  NodeModel node;
  ClusterSpec cluster;
  CollectiveTrial trial;
  int ranks = 0;
  Bytes job = 0;
};

// Bytes that the messages of a trace take out of and into each rank and each node, or each group of nodes that NVLinks
// join.
struct Load {
  std::map<int, double> out, in, node_out, node_in;

  Load(const Trace& trace, const RandomCase& made) {
    const int joined = std::max(made.gpus(), made.cluster.nvlink_domain);
    for (const Span& span : trace.spans) {
      if (!span.name.starts_with("to rank ")) continue;
      const int from = std::stoi(span.row.substr(5)), to = std::stoi(span.name.substr(8));
      const auto bytes = static_cast<double>(span.bytes);
      if (from == to) continue;
      out[from] += bytes;
      in[to] += bytes;
      if (from / joined == to / joined) continue;
      node_out[from / joined] += bytes;
      node_in[to / joined] += bytes;
    }
  }
};

Seconds launch(const RandomCase& made) {
  const bool simple = made.trial.algorithm == "nccl_ring" || made.trial.algorithm == "nccl_tree";
  const Costs& costs = made.node.costs();
  return costs["kernel.issue"] + costs["kernel.finish"] + (simple ? costs["nccl.simple_base"] : 0);
}

void check_links(const RandomCase& made, Seconds seconds, const Load& load) {
  const Seconds moving = (seconds - launch(made)) * (1 + slack);
  for (const auto& [rank, bytes] : load.out) ASSERT_GE(moving, bytes / made.out_of(made.gpu(rank))) << made.text();
  for (const auto& [rank, bytes] : load.in) ASSERT_GE(moving, bytes / made.into(made.gpu(rank))) << made.text();
  const double nodes = std::max(1, made.cluster.nvlink_domain / made.gpus());
  for (const auto& [node, bytes] : load.node_out) ASSERT_GE(moving, bytes / (nodes * made.ports())) << made.text();
  for (const auto& [node, bytes] : load.node_in) ASSERT_GE(moving, bytes / (nodes * made.ports())) << made.text();
}

// Each GPU of a node gives away all parts but its own and gets as many back; the NICs send and receive the sum once.
void check_in_network(const RandomCase& made, Seconds seconds) {
  const auto bytes = static_cast<double>(made.trial.bytes);
  const Seconds moving = (seconds - launch(made)) * (1 + slack);
  ASSERT_GE(moving, bytes / made.ports()) << made.text();
  for (int first = 0; first < made.ranks; first += made.gpus()) {
    const int group = std::min(made.gpus(), made.ranks - first);
    double out = 0, in = 0;
    for (int rank = first; rank < first + group; ++rank) {
      out += made.out_of(made.gpu(rank));
      in += made.into(made.gpu(rank));
    }
    ASSERT_GE(moving, (2 * (group - 1) + 1) * bytes / out) << made.text();
    ASSERT_GE(moving, (2 * (group - 1) + 1) * bytes / in) << made.text();
  }
}

TEST(RandomCollectives, NoneBeatsItsLinks) {
  unsigned ran = 0;
  for (unsigned seed = 1; seed <= random_cases(100); ++seed) {
    const RandomCase made(seed);
    Trace trace;
    const auto found = made.run(&trace);
    if (!found) continue;
    ++ran;
    if (made.trial.algorithm == "in_network")
      check_in_network(made, found->seconds);
    else
      check_links(made, found->seconds, Load(trace, made));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(ran, random_cases(100) / 2);
}

// Also if another job continues after it.
TEST(RandomCollectives, TheTimeIsThatOfTheLastStep) {
  for (unsigned seed = 1; seed <= random_cases(50); ++seed) {
    RandomCase made(seed);
    made.trial.job_bytes = made.job;
    Trace trace;
    const auto found = made.run(&trace);
    if (!found || made.trial.algorithm == "in_network") continue;
    Seconds last = 0;
    for (const Span& span : trace.spans) last = std::max(last, span.end);
    ASSERT_NEAR(found->seconds, last + launch(made), slack * found->seconds) << made.text() << " job " << made.job;
  }
}

TEST(RandomCollectives, TwiceTheBytesTakeNoLessTime) {
  for (unsigned seed = 1; seed <= random_cases(50); ++seed) {
    RandomCase made(seed);
    const auto once = made.run();
    if (!once) continue;
    made.trial.bytes *= 2;
    ASSERT_GE(made.run()->seconds, once->seconds * (1 - slack)) << made.text();
  }
}

TEST(RandomCollectives, AnotherJobDoesNotMakeThemFaster) {
  for (unsigned seed = 1; seed <= random_cases(50); ++seed) {
    RandomCase made(seed);
    const auto alone = made.run();
    if (!alone) continue;
    made.trial.job_bytes = made.job;
    ASSERT_GE(made.run()->seconds, alone->seconds * (1 - slack)) << made.text();
  }
}

}  // namespace
}  // namespace waywiser::sim
