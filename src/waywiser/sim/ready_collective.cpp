#include "waywiser/sim/ready_collective.hpp"

#include <algorithm>
#include <cstdint>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/nccl_channels.hpp"
#include "waywiser/sim/nccl_protocols.hpp"
#include "waywiser/sim/trial_schedules.hpp"

namespace waywiser::sim {
namespace {

constexpr std::uint32_t least_rounds = 8;  // of a run of rounds that are alike, in each of many channels

// Of the slowest type of node; 0: of none a rate is known.
BytesPerSecond slowest_reduce_rate(const World& world) {
  BytesPerSecond slowest = no_cap;
  for (const NodeModel* type : world.types())
    if (const BytesPerSecond rate = type->reduce_rate(); rate > 0) slowest = std::min(slowest, rate);
  return slowest == no_cap ? 0 : slowest;
}

// Of a GPU that keeps what has come: two accesses to its memory, where a sum has three.
BytesPerSecond copy_rate(const World& world) { return 1.5 * slowest_reduce_rate(world); }

// The last block that reaches a rank of NCCL's ring goes nowhere from there. The multiprocessors of the channels take
// it out of the channels' buffers, by LL with as many flags as bytes, and send nothing meanwhile.
Seconds keeping_last_block(const World& world, const CollectiveTrial& trial, int ranks, const NcclProtocol& protocol) {
  BytesPerSecond most = copy_rate(world) > 0 ? copy_rate(world) : no_cap;
  for (const NodeModel* type : world.types()) {
    const Costs& costs = type->costs();
    most = std::min(most, protocol.share * costs["nccl.channels"] * costs["sm.block_rate"]);
  }
  const double accesses = trial.operation == Collective::reduce_scatter ? 1.5 : 1;  // of those of a copy
  return accesses * static_cast<double>(trial.bytes) / ranks / most;
}

}  // namespace

ReadyCollective::ReadyCollective(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers,
                                 Trace* trace) {
  of_nccl_channels(trial.algorithm) ? by_channels(world, trial, ranks, peers, trace)
                                    : by_schedules(world, trial, ranks, peers, trace);
}

void ReadyCollective::by_schedules(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers,
                                   Trace* trace) {
  const RankOptions options{trial.direct, trial.pxn, peers, trial.first_node};
  routes_.emplace_back();
  for (const std::vector<std::string>& group : trial.groups)
    routes_.front().emplace_back(world, options, std::vector<Seats>{{group}});
  if (trial.groups.empty()) routes_.front().emplace_back(world, options, std::vector<Seats>{{trial.order}});
  StepCosts costs;
  costs.element = trial_element;
  costs.reduce_rate = slowest_reduce_rate(world);
  costs.copy_rate = copy_rate(world);
  const TrialSchedules maker = schedules_of(trial, ranks, routes_.front().front().ranks_of_node());
  costs.cuts = maker.cuts;
  std::vector<SchedulePart> parts;
  for (const RankRoutes& group : routes_.front()) parts.push_back({group, maker.make});
  run_ = std::make_unique<ScheduleRun>(world, parts, ranks, costs, trace);
}

// The first step of a rank reads its input where the others read what has arrived, so that nothing is copied first; the
// channels share the memory of a GPU, which adds while bytes arrive.
void ReadyCollective::by_channels(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers,
                                  Trace* trace) {
  CollectiveTrial own = trial;
  for (const std::vector<std::string>& group : trial.groups) {
    own.order = group;
    routes_.push_back(nccl_channels(world, own, peers, ranks));
  }
  if (routes_.empty()) routes_.push_back(nccl_channels(world, trial, peers, ranks));
  const int of_node = routes_.front().front().ranks_of_node();
  if (const auto why = why_not_nccl(trial, ranks, of_node)) throw Error(ErrorKind::unavailable, *why);
  const int nodes = std::max(1, ranks / of_node);
  for (const std::vector<RankRoutes>& channels : routes_)
    for (const RankRoutes& channel : channels)
      if (const auto why = why_not_protocol(channel, trial, nodes)) throw Error(ErrorKind::unavailable, *why);
  const Bytes elements = std::max<Bytes>(1, trial.bytes / trial_element);
  const Bytes trees = trial.algorithm == "nccl_tree" ? 2 : 1;  // of each channel
  const auto fewest = std::ranges::min(routes_, {}, &std::vector<RankRoutes>::size).size();
  const Bytes used = std::clamp<Bytes>(trial.bytes / nccl_channel_bytes, 1, trees * fewest);
  const NcclProtocol protocol = nccl_protocol(world.types(), trial, nodes);
  keeping_ = trees == 1 ? keeping_last_block(world, trial, ranks, protocol) : 0;
  base_ = protocol.base + keeping_;
  unreckoned_ = base_ - protocol.reckoned_base;
  StepCosts costs;
  costs.element = trial_element;
  costs.overlaps = true;
  costs.reduce_rate = slowest_reduce_rate(world) / static_cast<double>(used);
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
    for (const std::vector<RankRoutes>& channels : routes_) parts.push_back({channels[part / trees], make});
  }
  run_ = std::make_unique<ScheduleRun>(world, parts, ranks, costs, trace);
}

}  // namespace waywiser::sim
