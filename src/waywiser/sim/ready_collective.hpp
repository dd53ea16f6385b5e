#pragma once

#include <memory>
#include <vector>

#include "waywiser/sim/collective_run.hpp"

namespace waywiser::sim {

// A collective that is ready to run in a world: its routes, and the run over them.
class ReadyCollective {
 public:
  // Of the group's algorithms, or NCCL's rings and trees; each of the trial's groups has routes of its own, and all
  // groups run at once. Throws invalid_input or unavailable.
  ReadyCollective(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers, Trace* trace = nullptr);
  ScheduleRun& run() noexcept { return *run_; }
  // Of the operation, beside what the run takes.
  Seconds base() const noexcept { return base_; }
  Seconds unreckoned() const noexcept { return unreckoned_; }  // of base(), as Ran has it
  Seconds keeping() const noexcept { return keeping_; }        // of base(), after the last message

 private:
  void by_schedules(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers, Trace* trace);
  void by_channels(World& world, const CollectiveTrial& trial, int ranks, PeerCopies peers, Trace* trace);

  std::vector<std::vector<RankRoutes>> routes_;  // of each group, of each channel
  std::unique_ptr<ScheduleRun> run_;
  Seconds base_ = 0, unreckoned_ = 0, keeping_ = 0;
};

}  // namespace waywiser::sim
