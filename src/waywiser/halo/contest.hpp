#pragma once

#include <memory>
#include <vector>

#include "waywiser/halo/halo_run.hpp"
#include "waywiser/measure/contest.hpp"

namespace waywiser {

class Group;

// Measures runs. Collective: all times are those of the slowest rank, so all ranks go alike.
class HaloContest final : public Contest {
 public:
  // `begun`: when tune() was called, by now_seconds() of this rank.
  HaloContest(Group& group, Seconds begun);

  void enter(std::unique_ptr<HaloRun> run);
  // Rounds until `until` seconds have passed since `begun`, but at least and at most so many.
  void run(Seconds until, int least, int most);

  std::size_t size() const { return runs_.size(); }
  Seconds took() const { return took_; }  // since `begun`
  const std::vector<Seconds>& samples(std::size_t index) const { return contenders()[index].samples; }
  const HaloCounts& counts(std::size_t index) const { return runs_[index]->counts(); }
  std::unique_ptr<HaloRun> release(std::size_t index) { return std::move(runs_[index]); }

 private:
  std::vector<Sample> take(std::size_t which, int repetitions) override;
  Seconds now() const override { return took_; }

  Group& group_;
  const Seconds begun_;
  Seconds took_ = 0;
  std::vector<std::unique_ptr<HaloRun>> runs_;
};

}  // namespace waywiser
