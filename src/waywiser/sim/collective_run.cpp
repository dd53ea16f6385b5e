#include "waywiser/sim/collective_run.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_channels.hpp"
#include "waywiser/sim/nccl_choice.hpp"
#include "waywiser/sim/nccl_nvls.hpp"
#include "waywiser/sim/nccl_protocols.hpp"
#include "waywiser/sim/trial_schedules.hpp"

namespace waywiser::sim {
namespace {

constexpr std::uint32_t least_rounds = 8;  // of a run of rounds that are alike, in each of many channels

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
      world.engine().transfer(route.uses, no_cap, bytes, route.latency, nobody, 0);
    }
  return world.nodes() * senders;
}

// Each group has routes of its own; all groups run at once.
Ran run_schedules(World& world, const RankRoutes& routes, const CollectiveTrial& trial, int ranks, PeerCopies peers,
                  Trace* trace) {
  Nobody nobody;
  std::vector<RankRoutes> groups;
  for (const std::vector<std::string>& group : trial.groups)
    groups.emplace_back(world, trial.direct, group, trial.pxn, peers);
  if (groups.empty()) groups.push_back(routes);
  StepCosts costs;
  costs.element = trial_element;
  costs.reduce_rate = world.node().reduce_rate();
  costs.copy_rate = 1.5 * costs.reduce_rate;  // two accesses instead of three
  const TrialSchedules maker = schedules_of(trial, ranks, routes.ranks_of_node());
  costs.cuts = maker.cuts;
  std::vector<SchedulePart> parts;
  for (const RankRoutes& group : groups) parts.push_back({group, maker.make});
  ScheduleRun run(world, parts, ranks, costs, trace);
  add_other_job(world, routes, trial, nobody);
  return run.run();
}

std::vector<std::vector<RankRoutes>> channels_of_groups(World& world, const CollectiveTrial& trial, PeerCopies peers,
                                                        int ranks) {
  if (trial.groups.empty()) return {nccl_channels(world, trial, peers, ranks)};
  std::vector<std::vector<RankRoutes>> groups;
  CollectiveTrial one = trial;
  for (const std::vector<std::string>& group : trial.groups) {
    one.order = group;
    groups.push_back(nccl_channels(world, one, peers, ranks));
  }
  return groups;
}

// The first step of a rank reads its input where the others read what has arrived, so that nothing is copied first; the
// channels share the memory of a GPU, which adds while bytes arrive.
Ran run_channels(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers, Trace* trace) {
  const std::vector<std::vector<RankRoutes>> groups = channels_of_groups(world, trial, peers, ranks);
  const std::vector<RankRoutes>& first = groups.front();
  const int of_node = first.front().ranks_of_node();
  if (const auto why = why_not_nccl(trial, ranks, of_node)) throw Error(ErrorKind::unavailable, *why);
  const int nodes = std::max(1, ranks / of_node);
  for (const std::vector<RankRoutes>& channels : groups)
    for (const RankRoutes& channel : channels)
      if (const auto why = why_not_protocol(world.node(), channel, trial, nodes))
        throw Error(ErrorKind::unavailable, *why);
  const Bytes elements = std::max<Bytes>(1, trial.bytes / trial_element);
  const Bytes trees = trial.algorithm == "nccl_tree" ? 2 : 1;  // of each channel
  const auto fewest = std::ranges::min(groups, {}, &std::vector<RankRoutes>::size).size();
  const Bytes used = std::clamp<Bytes>(trial.bytes / nccl_channel_bytes, 1, trees * fewest);
  const NcclProtocol protocol = nccl_protocol(world.node(), trial, nodes);
  StepCosts costs;
  costs.element = trial_element;
  costs.overlaps = true;
  costs.reduce_rate = world.node().reduce_rate() / static_cast<double>(used);
  costs.weight = 1 / protocol.share;
  costs.most = protocol.most / static_cast<double>(trees * used);
  costs.later = protocol.later;
  costs.later_between = protocol.later_between;
  std::vector<SchedulePart> parts;
  for (Bytes part = 0; part < used; ++part) {
    CollectiveTrial share = trial;
    share.bytes = (elements * (part + 1) / used - elements * part / used) * trial_element;
    share.algorithm = "ring";
    if (trial.most_rounds != 0)
      share.most_rounds = std::max<std::uint32_t>(least_rounds, trial.most_rounds / static_cast<std::uint32_t>(used));
    std::function<Schedule(int)> make;
    if (trees == 1) {
      TrialSchedules maker = schedules_of(share, ranks, of_node);
      costs.cuts = std::move(maker.cuts);  // the same of every channel
      make = std::move(maker.make);
    } else {
      const int tree = static_cast<int>(part % trees);
      make = [=](int rank) { return nccl_tree(call_of(share, ranks, rank, of_node), of_node, tree); };
    }
    for (const std::vector<RankRoutes>& channels : groups) parts.push_back({channels[part / trees], make});
  }
  Nobody nobody;
  ScheduleRun run(world, parts, ranks, costs, trace);
  add_other_job(world, first.front(), trial, nobody);
  return run.run();
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
  const RankRoutes routes(world, trial.direct, order, trial.pxn, peers);
  const bool could_be_staged = routes.could_be_staged();
  const int all = world.nodes() * routes.ranks_of_node();
  const int ranks = trial.ranks == 0 ? all : trial.ranks;
  if (ranks < 1 || ranks > all)
    throw Error(ErrorKind::invalid_input,
                std::to_string(ranks) + " ranks: the cluster has 1 to " + std::to_string(all));
  Nobody nobody;
  const bool channels = of_nccl_channels(trial.algorithm);
  const bool by_switches = trial.algorithm == "in_network" || trial.algorithm == "nccl_collnet";
  if (!trial.groups.empty() && by_switches)
    throw Error(ErrorKind::unavailable, trial.algorithm + " is not for several groups at once");
  if (by_switches && (!cluster.in_network_reduction || trial.operation != Collective::all_reduce))
    throw Error(ErrorKind::unavailable,
                trial.algorithm + ": the switches of the cluster do not reduce; write in_network_reduction: yes");
  if (by_switches || of_nvls(trial.algorithm)) {
    const int other = add_other_job(world, routes, trial, nobody);
    Ran ran = by_switches ? in_network_all_reduce(world, routes, ranks, trial.bytes, trace)
                          : nvls_all_reduce(world, trial, ranks, trace);
    ran.messages -= static_cast<std::uint64_t>(other);
    ran.bytes -= other * static_cast<double>(trial.job_bytes);
    return {ran, could_be_staged};
  }
  Ran ran = channels ? run_channels(world, trial, ranks, peers, trace)
                     : run_schedules(world, routes, trial, ranks, peers, trace);
  ran.seconds += node.costs()["kernel.issue"] + node.costs()["kernel.finish"];
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
