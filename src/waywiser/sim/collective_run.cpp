#include "waywiser/sim/collective_run.hpp"

#include <algorithm>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_channels.hpp"
#include "waywiser/sim/nccl_choice.hpp"
#include "waywiser/sim/nccl_nvls.hpp"
#include "waywiser/sim/ready_collective.hpp"

namespace waywiser::sim {
namespace {

class Nobody : public Listener {
 public:
  void wake(std::uint64_t) override {}
};

// Returns its flows.
int add_other_job(World& world, const RankRoutes& routes, const CollectiveTrial& trial, Nobody& nobody) {
  if ((trial.job_bytes == 0 && !trial.endless_job) || world.nodes() < 2) return 0;
  const double bytes =
      trial.endless_job ? std::numeric_limits<double>::infinity() : static_cast<double>(trial.job_bytes);
  const int senders = trial.endless_job ? routes.ranks_of_node() : 1;
  for (int node = 0; node < world.nodes(); ++node)
    for (int sender = 0; sender < senders; ++sender) {
      const int other = (node + world.nodes() / 2) % world.nodes();
      const TimedRoute route =
          routes.route(node * routes.ranks_of_node() + sender, other * routes.ranks_of_node() + sender);
      world.engine().transfer(route.uses, route.cap, bytes, route.latency, nobody, 0);
    }
  return world.nodes() * senders;
}

// What the other job does again and again; none of what has no network to share: NVLS within the nodes.
std::unique_ptr<ReadyCollective> other_job(World& world, const CollectiveTrial& trial) {
  if (trial.beside == nullptr) return nullptr;
  CollectiveTrial other = *trial.beside;
  if (other.beside != nullptr || trial.job_bytes != 0 || trial.endless_job)
    throw Error(ErrorKind::invalid_input, "a collective has one other job beside it");
  if (other.nodes < 1 || other.nodes >= world.nodes())
    throw Error(ErrorKind::invalid_input, "the other job needs nodes of its own");
  if (other.algorithm == "nccl_nvls") return nullptr;
  if (other.algorithm == "nccl_nvls_tree") other.algorithm = "nccl_tree";  // as many bytes between the nodes
  other.first_node = world.nodes() - other.nodes;
  const std::vector<std::string>& order = other.groups.empty() ? other.order : other.groups.front();
  const RankRoutes routes(world, {other.direct, other.pxn, PeerCopies::best, other.first_node}, {{order}});
  return std::make_unique<ReadyCollective>(world, other, other.nodes * routes.ranks_of_node(), PeerCopies::best);
}

// NCCL's rings: the ranks keep their last blocks.
void note_keeping(Trace& trace, Seconds seconds) {
  Seconds over = 0;
  for (const Span& span : trace.spans) over = std::max(over, span.end);
  if (seconds > 0) trace.spans.push_back({"all ranks", "keep the last block", over, over + seconds, 0});
}

struct Tried {
  Ran ran;
  bool could_be_staged = false;
};

Tried run_once(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, PeerCopies peers,
               Trace* trace) {
  World world(node, cluster);
  for (const std::vector<std::string>& group : trial.groups)
    if (group.empty() || group.size() != trial.groups.front().size())
      throw Error(ErrorKind::invalid_input, "all groups of a collective need as many GPUs");
  const std::vector<std::string>& order = trial.groups.empty() ? trial.order : trial.groups.front();
  const RankRoutes routes(world, {trial.direct, trial.pxn, peers, trial.first_node}, {{order}});
  const bool could_be_staged = routes.could_be_staged();
  const int all = (world.nodes() - (trial.beside == nullptr ? 0 : trial.beside->nodes)) * routes.ranks_of_node();
  const int ranks = trial.ranks == 0 ? all : trial.ranks;
  if (ranks < 1 || ranks > all)
    throw Error(ErrorKind::invalid_input,
                std::to_string(ranks) + " ranks: the cluster has 1 to " + std::to_string(all));
  Nobody nobody;
  const bool by_switches = trial.algorithm == "in_network" || trial.algorithm == "nccl_collnet";
  if (!trial.groups.empty() && by_switches)
    throw Error(ErrorKind::unavailable, trial.algorithm + " is not for several groups at once");
  if (by_switches && (!cluster.in_network_reduction || trial.operation != Collective::all_reduce))
    throw Error(ErrorKind::unavailable,
                trial.algorithm + ": the switches of the cluster do not reduce; write in_network_reduction: yes");
  if (by_switches && world.by_tcp())
    throw Error(ErrorKind::unavailable, trial.algorithm + ": plain Ethernet does not reduce: it needs cards with RDMA");
  const std::unique_ptr<ReadyCollective> beside = other_job(world, trial);
  if (by_switches || of_nvls(trial.algorithm)) {
    if (beside != nullptr) beside->run().repeat();
    const int other = add_other_job(world, routes, trial, nobody);
    Ran ran = by_switches ? in_network_all_reduce(world, routes, ranks, trial.bytes, trace)
                          : nvls_all_reduce(world, trial, ranks, trace);
    ran.messages -= static_cast<std::uint64_t>(other);
    ran.bytes -= other * static_cast<double>(trial.job_bytes);
    return {ran, could_be_staged};
  }
  ReadyCollective ready(world, trial, ranks, peers, trace);
  add_other_job(world, routes, trial, nobody);
  if (beside != nullptr) beside->run().repeat();
  Ran ran = ready.run().run();
  if (trace != nullptr) note_keeping(*trace, ready.keeping());
  ran.seconds += ready.base() + node.costs()["kernel.issue"] + node.costs()["kernel.finish"];
  ran.unreckoned = ready.unreckoned();
  return {ran, could_be_staged};
}

}  // namespace

Ran simulate(const NodeModel& node, const ClusterSpec& cluster, const CollectiveTrial& trial, Trace* trace) {
  if (trial.algorithm == "nccl") return nccl_choice(node, cluster, trial, trace);
  Trace first, second;
  const Tried best = run_once(node, cluster, trial, PeerCopies::best, trace == nullptr ? nullptr : &first);
  Tried chosen = best;
  if (best.could_be_staged) {
    const Tried staged = run_once(node, cluster, trial, PeerCopies::staged, trace == nullptr ? nullptr : &second);
    if (staged.ran.seconds < best.ran.seconds) {
      chosen = staged;
      std::swap(first, second);
    }
  }
  if (trace != nullptr) trace->spans = std::move(first.spans);
  return chosen.ran;
}

}  // namespace waywiser::sim
