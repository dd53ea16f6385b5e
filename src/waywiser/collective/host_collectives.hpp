#pragma once

#include <array>
#include <memory>
#include <optional>

#include "waywiser/collective/group_core.hpp"
#include "waywiser/collective/known_calls.hpp"
#include "waywiser/comm/schedule_cache.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {

struct CollectiveAlgorithm;

// The collectives that the hosts of one group carry out: chooses their algorithms. The calls that it takes lack the
// machines of the ranks.
class HostCollectives {
 public:
  explicit HostCollectives(GroupCore& core) : core_(core) {}
  HostCollectives(const HostCollectives&) = delete;
  HostCollectives& operator=(const HostCollectives&) = delete;

  GroupCore& core() const noexcept { return core_; }
  // The schedule for run() and start().
  std::shared_ptr<const Schedule> schedule_for(const CollectiveCall& wanted);
  // GPU arrays are staged through host memory. Complete when it returns.
  void run(const CollectiveCall& wanted, ConstElements input, Elements output);
  // Runs a call like those that have been noted, with the next number. False: lanes cannot carry it, or it is not
  // known; nothing has happened.
  bool run_again(const CallShape& shape, ConstRegion input, Region output);
  // Notes a call of host memory that has been checked and run.
  void note(const CallShape& shape, const CollectiveCall& done);
  // Starts it; the session advances it.
  std::shared_ptr<Activity> start(const CollectiveCall& wanted, ConstElements input, Elements output);
  // The algorithm for all later calls: one of docs/algorithms.md, or empty for the default choice. The name of a GPU
  // algorithm changes nothing here.
  void set_algorithm(std::optional<Way> way);

 private:
  const CollectiveAlgorithm* set_algorithm(const CollectiveCall& complete) const;
  const CollectiveAlgorithm* planned(const CollectiveCall& complete);
  const CollectiveAlgorithm& algorithm_for(const CollectiveCall& complete);

  GroupCore& core_;
  ScheduleCache schedules_;
  KnownCalls known_;
  std::optional<Way> way_;  // empty: the default choice
  std::array<std::optional<PlannedWays<const CollectiveAlgorithm*>>, collectives> planned_;  // read when needed
};

}  // namespace waywiser
