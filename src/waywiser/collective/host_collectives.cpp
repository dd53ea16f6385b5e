#include "waywiser/collective/host_collectives.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/comm/windows/host_staging.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

// Ranks of one machine get the same number, so that algorithms can first work within machines.
std::vector<int> machines_of(const Session& session, const Members& members) {
  std::vector<int> machines;
  for (const int rank : members.world) {
    const std::string& machine = session.introduction(rank).machine_id;
    const auto same = std::ranges::find_if(
        members.world, [&](int other) { return session.introduction(other).machine_id == machine; });
    machines.push_back(static_cast<int>(same - members.world.begin()));
  }
  const bool one = std::ranges::all_of(machines, [](int machine) { return machine == 0; });
  return one ? std::vector<int>() : machines;
}

// nullptr: no such algorithm for hosts.
const CollectiveAlgorithm* host_algorithm(Collective operation, const Way& way) {
  const auto found = std::ranges::find_if(algorithms(), [&](const CollectiveAlgorithm& row) {
    return row.operation == operation && row.name == way.name && !row.kernel && way.parameters.empty();
  });
  return found == algorithms().end() ? nullptr : &*found;
}

}  // namespace

HostCollectives::HostCollectives(std::shared_ptr<Session> session, Members members)
    : session_(std::move(session)),
      members_(std::make_shared<const Members>(std::move(members))),
      execution_(*session_) {}

void HostCollectives::refuse_thread() const {
  throw Error(ErrorKind::invalid_input,
              "rank " + std::to_string(rank()) + ": another thread is in a call of this group" +
                  ": one thread at a time may use a group; make one for each thread by split");
}

void HostCollectives::refuse_rank(int rank, const char* what) const {
  throw Error(ErrorKind::invalid_input, std::string(what) + " rank " + std::to_string(rank) +
                                            ": the group has ranks 0 to " + std::to_string(size() - 1));
}

void HostCollectives::set_algorithm(std::optional<Way> way) {
  way_ = std::move(way);
  schedules_ = {};
}

CollectiveCall HostCollectives::next_collective(Collective operation, ConstElements data, std::size_t count,
                                                ReduceOp op, int root) {
  CollectiveCall call;
  call.as = next_call(kind_of(operation), data, -1, op, root);
  call.operation = operation;
  call.rank = rank();
  call.ranks = size();
  call.root = std::max(root, 0);
  call.count = count;
  return call;
}

CollectiveCall HostCollectives::complete(const CollectiveCall& wanted) const {
  CollectiveCall complete = wanted;
  complete.machine_of = machines_of(*session_, *members_);
  return complete;
}

// Some GPU algorithms have the name of a host algorithm.
const CollectiveAlgorithm* HostCollectives::set_algorithm(const CollectiveCall& complete) const {
  if (!way_ || complete.operation == Collective::barrier) return nullptr;
  const CollectiveAlgorithm* set = host_algorithm(complete.operation, *way_);
  if (set == nullptr) {
    if (!gpu_algorithm(*way_)) find_algorithm(complete.operation, text(*way_));  // throws for an unknown name
    return nullptr;
  }
  if (const auto why = set->why_unavailable(complete)) throw Error(ErrorKind::unavailable, text(*way_) + ": " + *why);
  return set;
}

const CollectiveAlgorithm* HostCollectives::planned(const CollectiveCall& complete) {
  auto& ways = planned_[static_cast<std::size_t>(complete.operation)];
  if (!ways)
    ways.emplace(session_->options().chooser.get(), WaysOf{name(complete.operation), "host", size()},
                 [&](const Way& way) -> std::optional<const CollectiveAlgorithm*> {
                   const CollectiveAlgorithm* known = host_algorithm(complete.operation, way);
                   return known == nullptr ? std::nullopt : std::optional(known);
                 });
  const auto why_not = [&](const CollectiveAlgorithm* each) { return each->why_unavailable(complete); };
  const CollectiveAlgorithm* const* found = ways->find(
      complete.count * bytes_of(complete.as.type), [&](const CollectiveAlgorithm* each) { return !why_not(each); },
      [&](const CollectiveAlgorithm* each) { return why_not(each).value_or(""); });
  return found == nullptr ? nullptr : *found;
}

// The algorithm that was set, or the plan's, or the default.
const CollectiveAlgorithm& HostCollectives::algorithm_for(const CollectiveCall& complete) {
  if (const CollectiveAlgorithm* set = set_algorithm(complete)) return *set;
  if (complete.counts.empty() && complete.machine_of.empty())
    if (const CollectiveAlgorithm* found = planned(complete)) return *found;
  return default_algorithm(complete, bytes_of(complete.as.type));
}

std::shared_ptr<const Schedule> HostCollectives::schedule_for(const CollectiveCall& wanted) {
  const ScheduleKey key{static_cast<std::uint8_t>(wanted.operation),
                        static_cast<std::uint8_t>(bytes_of(wanted.as.type)), wanted.root, wanted.count};
  const bool kept = wanted.counts.empty();
  if (kept)
    if (auto known = schedules_.find(key)) return known;
  const CollectiveCall call = complete(wanted);
  Schedule schedule = algorithm_for(call).make(call);
  return kept ? schedules_.keep(key, std::move(schedule)) : std::make_shared<const Schedule>(std::move(schedule));
}

void HostCollectives::run(const CollectiveCall& wanted, ConstElements input, Elements output) {
  run(wanted.as, schedule_for(wanted), input, output);
}

std::shared_ptr<Activity> HostCollectives::start(const CollectiveCall& wanted, ConstElements input, Elements output) {
  return start(wanted.as, schedule_for(wanted), input, output);
}

void HostCollectives::run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input,
                          Elements output) {
  if (is_staged(input) || is_staged(output))
    return session_->wait_for(*start(call, std::move(schedule), input, output));
  const InCall in_call(*session_, call);
  execution_.begin(members_, call, std::move(schedule), input, output);
  session_->wait(execution_);
}

std::shared_ptr<Activity> HostCollectives::start(const Call& call, std::shared_ptr<const Schedule> schedule,
                                                 ConstElements input, Elements output) {
  const InCall in_call(*session_, call);
  auto staging = std::make_unique<Staging>(*session_);
  if (!is_staged(input) && !is_staged(output)) staging.reset();
  auto execution = std::make_shared<Execution>(*session_);
  execution->begin(members_, call, std::move(schedule), staging ? staging->input(input) : input,
                   staging ? staging->output(output) : output);
  const std::shared_ptr<Activity> operation = staged(std::move(execution), std::move(staging));
  session_->start(operation);
  return operation;
}

void HostCollectives::run_usual(const CollectiveCall& wanted, ConstElements input, Elements output) {
  const CollectiveCall here = complete(wanted);
  run(here.as, std::make_shared<const Schedule>(default_algorithm(here, bytes_of(here.as.type)).make(here)), input,
      output);
}

void HostCollectives::all_gather_for(CallKind kind, ConstElements mine, Elements all) {
  CollectiveCall wanted = next_collective(Collective::all_gather, mine, mine.count());
  wanted.as.kind = kind;
  run_usual(wanted, mine, all);
}

void HostCollectives::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  all_gather_for(CallKind::all_gather, mine, all);
}

void HostCollectives::broadcast(std::span<std::byte> data, int root) {
  run_usual(next_collective(Collective::broadcast, Elements(data), data.size(), ReduceOp::sum, root), Elements(data),
            data);
}

}  // namespace waywiser
