#pragma once

#include <functional>
#include <vector>

#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/schedule_run.hpp"

namespace waywiser::sim {

inline constexpr Bytes trial_element = 4;  // bytes of an element of all trials

// What a group would ask for on one of its ranks.
CollectiveCall call_of(const CollectiveTrial& trial, int ranks, int rank, int ranks_of_node);

// What every rank runs, with the rounds that are left out of all of them.
struct TrialSchedules {
  std::function<Schedule(int)> make;
  std::vector<Cut> cuts;
};

// Of the group's algorithms. Throws unavailable, for example for more steps than can be run.
TrialSchedules schedules_of(const CollectiveTrial& trial, int ranks, int ranks_of_node);

}  // namespace waywiser::sim
