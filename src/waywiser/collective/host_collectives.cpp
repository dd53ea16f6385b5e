#include "waywiser/collective/host_collectives.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/gpu/gpu_algorithm.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

// nullptr: no such algorithm for hosts.
const CollectiveAlgorithm* host_algorithm(Collective operation, const Way& way) {
  const auto found = std::ranges::find_if(algorithms(), [&](const CollectiveAlgorithm& row) {
    return row.operation == operation && row.name == way.name && !row.kernel && way.parameters.empty();
  });
  return found == algorithms().end() ? nullptr : &*found;
}

}  // namespace

void HostCollectives::set_algorithm(std::optional<Way> way) {
  way_ = std::move(way);
  schedules_ = {};
  known_ = {};
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
    ways.emplace(core_.session().options().chooser.get(), WaysOf{name(complete.operation), "host", core_.size()},
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
  const CollectiveCall call = core_.with_machines(wanted);
  Schedule schedule = algorithm_for(call).make(call);
  return kept ? schedules_.keep(key, std::move(schedule)) : std::make_shared<const Schedule>(std::move(schedule));
}

void HostCollectives::run(const CollectiveCall& wanted, ConstElements input, Elements output) {
  core_.run(wanted.as, schedule_for(wanted), input, output);
}

bool HostCollectives::run_again(const CallShape& shape, ConstRegion input, Region output) {
  const KnownCalls::Known* known = known_.find(shape);
  if (known == nullptr || !known->schedule) return false;
  if (known->schedule->longest > core_.session().engine().mailboxes().sizes().lane) return false;
  core_.run(core_.numbered_again(known->as), known->schedule, input, output);
  return true;
}

// The first time it may be the last one.
void HostCollectives::note(const CallShape& shape, const CollectiveCall& done) {
  KnownCalls::Known* known = known_.find(shape);
  if (known == nullptr) return known_.add(shape);
  if (known->state == KnownCalls::Known::State::made) return;
  known->state = KnownCalls::Known::State::made;
  known->as = done.as;
  known->schedule =
      lane_schedule(*schedule_for(done), bytes_of(done.as.type), core_.members(), core_.session().engine().mailboxes());
}

std::shared_ptr<Activity> HostCollectives::start(const CollectiveCall& wanted, ConstElements input, Elements output) {
  return core_.start(wanted.as, schedule_for(wanted), input, output);
}

}  // namespace waywiser
