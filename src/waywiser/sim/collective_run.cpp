#include "waywiser/sim/collective_run.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/sim/nccl_channels.hpp"
#include "waywiser/sim/nccl_choice.hpp"
#include "waywiser/sim/nccl_nvls.hpp"
#include "waywiser/sim/nccl_protocols.hpp"

namespace waywiser::sim {
namespace {

constexpr Bytes element = 4;
constexpr int few_ranks = 256;             // below, every rank's schedule is made
constexpr std::uint32_t least_rounds = 8;  // of a run of rounds that are alike, in each of many channels

class Nobody : public Listener {
 public:
  void wake(std::uint64_t) override {}
};

bool of_whole(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce || operation == Collective::broadcast;
}

// The sides of a box of ranks, as equal as the divisors of `ranks` allow, largest first.
std::array<int, 3> box_of(int ranks) {
  std::array<int, 3> best{ranks, 1, 1};
  for (int z = 1; z * z * z <= ranks; ++z)
    for (int y = z; ranks % z == 0 && y * y <= ranks / z; ++y)
      if (ranks / z % y == 0 && ranks / z / y - z <= best[0] - best[2]) best = {ranks / z / y, y, z};
  return best;
}

// Six faces of a periodic box, with an equal part of the elements each.
std::vector<Neighbor> neighbors_of(int rank, int ranks, Bytes elements) {
  std::vector<Neighbor> found;
  const std::size_t face = static_cast<std::size_t>(std::max<Bytes>(1, elements / 6));
  int stride = 1, tag = 0;
  for (const int side : box_of(ranks)) {
    const int here = rank / stride % side;
    for (const int step : {1, side - 1}) {
      const int peer = rank + ((here + step) % side - here) * stride;
      const int opposite = tag ^ 1;
      if (side > 1) found.push_back({peer, face, face, tag, opposite});
      ++tag;
    }
    stride *= side;
  }
  return found;
}

CollectiveCall call_of(const CollectiveTrial& trial, int ranks, int rank, int ranks_of_node) {
  CollectiveCall call;
  call.operation = trial.operation;
  call.rank = rank;
  call.ranks = ranks;
  call.chunk = static_cast<std::size_t>(trial.chunk / element);
  const Bytes elements = std::max<Bytes>(1, trial.bytes / element);
  call.count = static_cast<std::size_t>(
      of_whole(trial.operation) ? elements : std::max<Bytes>(1, elements / static_cast<Bytes>(ranks)));
  if (trial.operation == Collective::barrier) call.count = 0;
  if (trial.operation == Collective::neighbor_exchange) call.neighbors = neighbors_of(rank, ranks, elements);
  if (trial.algorithm == "hierarchical")
    for (int i = 0; i < ranks; ++i) call.machine_of.push_back(i / ranks_of_node);
  return call;
}

bool same_but_shifted(const Schedule& first, const Schedule& other, int shift, int ranks) {
  if (first.steps.size() != other.steps.size()) return false;
  for (std::size_t i = 0; i < first.steps.size(); ++i) {
    const Step &a = first.steps[i], &b = other.steps[i];
    if (a.kind != b.kind || a.round != b.round || (a.peer < 0) != (b.peer < 0)) return false;
    if (a.peer >= 0 && (a.peer + shift) % ranks != b.peer) return false;
    const auto apart = [](std::size_t x, std::size_t y) { return x > y ? x - y : y - x; };
    if (apart(a.source.count, b.source.count) > 1 || apart(a.destination.count, b.destination.count) > 1) return false;
  }
  return true;
}

struct Maker {
  std::function<Schedule(int)> make;
  std::vector<Cut> cuts;
};

Schedule shifted(Schedule schedule, int rank, int ranks) {
  schedule.rank = rank;
  for (Step& step : schedule.steps)
    if (step.peer >= 0) step.peer = (step.peer + rank) % ranks;
  return schedule;
}

// The steps of all ranks if every node has as many as the one of two nodes inside that has fewer.
std::size_t expected_steps(const std::function<Schedule(int)>& make, int ranks, int ranks_of_node) {
  const int nodes = ranks / ranks_of_node;
  std::size_t least = SIZE_MAX;
  for (const int node : {std::min(1, nodes - 1), nodes / 2}) {
    std::size_t steps = 0;
    for (int i = 0; i < ranks_of_node; ++i) steps += make(node * ranks_of_node + i).steps.size();
    least = std::min(least, steps);
  }
  return least * static_cast<std::size_t>(nodes);
}

// Before hours of work: refuses what would be refused after it.
void check_steps(std::size_t steps, std::string_view algorithm) {
  if (steps > most_steps)
    throw Error(ErrorKind::unavailable, std::string(algorithm) + ": more than 50 million steps, too many to run");
}

// If a few ranks far apart have the same schedule with shifted peers, all ranks have it: one schedule is made instead
// of thousands.
Maker maker_of(const CollectiveTrial& trial, int ranks, int ranks_of_node) {
  const CollectiveAlgorithm& algorithm = find_algorithm(trial.operation, trial.algorithm);
  if (const auto why = algorithm.why_unavailable(call_of(trial, ranks, 0, ranks_of_node)))
    throw Error(ErrorKind::unavailable, std::string(algorithm.name) + ": " + *why);
  const auto make = [=, &algorithm](int rank) { return algorithm.make(call_of(trial, ranks, rank, ranks_of_node)); };
  if (ranks <= few_ranks) return {make, {}};
  Schedule first = make(0);
  for (const int other : {1, 2, 3, ranks / 3, ranks / 2, ranks - 1})
    if (!same_but_shifted(first, make(other), other, ranks)) {
      if (ranks >= ranks_of_node) check_steps(expected_steps(make, ranks, ranks_of_node), algorithm.name);
      return {make, {}};
    }
  std::vector<Cut> cuts;
  if (trial.most_rounds != 0 && trial.job_bytes == 0) cuts = cut_repetition(first, trial.most_rounds);
  check_steps(first.steps.size() * static_cast<std::size_t>(ranks), algorithm.name);
  const auto by_shift = [first = std::move(first), ranks](int rank) { return shifted(first, rank, ranks); };
  return {by_shift, std::move(cuts)};
}

// Returns its flows.
int add_other_job(World& world, const RankRoutes& routes, Bytes bytes, Nobody& nobody) {
  if (bytes == 0 || world.nodes() < 2) return 0;
  for (int node = 0; node < world.nodes(); ++node) {
    const int other = (node + world.nodes() / 2) % world.nodes();
    const TimedRoute route = routes.route(node * routes.ranks_of_node(), other * routes.ranks_of_node());
    world.engine().transfer(route.uses, no_cap, static_cast<double>(bytes), route.latency, nobody, 0);
  }
  return world.nodes();
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
  costs.element = element;
  costs.reduce_rate = world.node().reduce_rate();
  costs.copy_rate = 1.5 * costs.reduce_rate;  // two accesses instead of three
  const Maker maker = maker_of(trial, ranks, routes.ranks_of_node());
  costs.cuts = maker.cuts;
  std::vector<SchedulePart> parts;
  for (const RankRoutes& group : groups) parts.push_back({group, maker.make});
  ScheduleRun run(world, parts, ranks, costs, trace);
  add_other_job(world, routes, trial.job_bytes, nobody);
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
  const Bytes elements = std::max<Bytes>(1, trial.bytes / element);
  const Bytes trees = trial.algorithm == "nccl_tree" ? 2 : 1;  // of each channel
  const auto fewest = std::ranges::min(groups, {}, &std::vector<RankRoutes>::size).size();
  const Bytes used = std::clamp<Bytes>(trial.bytes / nccl_channel_bytes, 1, trees * fewest);
  const NcclProtocol protocol = nccl_protocol(world.node(), trial, nodes);
  StepCosts costs;
  costs.element = element;
  costs.overlaps = true;
  costs.reduce_rate = world.node().reduce_rate() / static_cast<double>(used);
  costs.weight = 1 / protocol.share;
  costs.most = protocol.most / static_cast<double>(trees * used);
  costs.later = protocol.later;
  costs.later_between = protocol.later_between;
  std::vector<SchedulePart> parts;
  for (Bytes part = 0; part < used; ++part) {
    CollectiveTrial share = trial;
    share.bytes = (elements * (part + 1) / used - elements * part / used) * element;
    share.algorithm = "ring";
    if (trial.most_rounds != 0)
      share.most_rounds = std::max<std::uint32_t>(least_rounds, trial.most_rounds / static_cast<std::uint32_t>(used));
    std::function<Schedule(int)> make;
    if (trees == 1) {
      Maker maker = maker_of(share, ranks, of_node);
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
  add_other_job(world, first.front(), trial.job_bytes, nobody);
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
    const int other = add_other_job(world, routes, trial.job_bytes, nobody);
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
