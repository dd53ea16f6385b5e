#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/halo/halo_run.hpp"

namespace waywiser {

class Group;

// Runs that are timed in turn. All times are those of the slowest rank, so all ranks go alike.
class HaloContest {
 public:
  // `begun`: when tune() was called, by now_seconds() of this rank.
  HaloContest(Group& group, Seconds begun) : group_(group), begun_(begun) {}

  void add(std::unique_ptr<HaloRun> run) { all_.push_back({std::move(run), 1, {}}); }
  // Collective: rounds of one sample each, until `until` seconds have passed since `begun`, but at least and at most so
  // many.
  void run(Seconds until, int least, int most);

  std::size_t size() const { return all_.size(); }
  Seconds took() const { return took_; }  // since `begun`
  const std::vector<Seconds>& samples(std::size_t index) const { return all_[index].samples; }
  const HaloCounts& counts(std::size_t index) const { return all_[index].run->counts(); }
  std::unique_ptr<HaloRun> take(std::size_t index) { return std::move(all_[index].run); }

 private:
  struct Entry {
    std::unique_ptr<HaloRun> run;
    int exchanges = 1;  // of a sample
    std::vector<Seconds> samples;
  };

  Seconds time(Entry& entry);
  void sample(int round);
  void slowest(std::vector<Seconds>& times);

  Group& group_;
  const Seconds begun_;
  Seconds took_ = 0;
  std::vector<Entry> all_;
};

}  // namespace waywiser
