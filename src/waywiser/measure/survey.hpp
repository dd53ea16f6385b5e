#pragma once

#include "waywiser/measure/work.hpp"

namespace waywiser {

class Comparer;
class Watch;

// Times every pair of a class, not only the one that stands for it, at one large and one small size on the fastest
// path of the class: so that a pair that is slower than those like it is found. Not for choosing.
class Survey {
 public:
  // Keeps what `previous` has.
  Survey(Meter& meter, const CampaignOptions& options, const Profile* previous, Watch& watch);

  // All pairs at the large size one way, then at the small size, then both ways, as far as the time reaches.
  void run(const Findings& findings, double until);
  void enter(Profile& profile) const;

 private:
  void measure(const Work& work, const PointStore& known, Operation operation, double until);
  Bytes size(Operation operation) const;

  Meter& meter_;
  const CampaignOptions& options_;
  Watch& watch_;
  PointStore points_;
  std::vector<Path> paths_;  // in the order of measuring, each once
};

}  // namespace waywiser
