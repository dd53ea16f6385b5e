#pragma once

#include "waywiser/measure/comparison.hpp"
#include "waywiser/measure/watch.hpp"
#include "waywiser/measure/work.hpp"

namespace waywiser {

// Decides which paths of a family are measured in full: the available ones, and for families with parameters the few
// that win somewhere. Times their first use.
class Admission {
 public:
  Admission(Meter& meter, const CampaignOptions& options, const Profile* previous, Findings& findings,
            Comparer& comparer, Watch& watch)
      : meter_(meter),
        options_(options),
        previous_(previous),
        findings_(findings),
        comparer_(comparer),
        watch_(watch) {}

  // The number of steps that admit() reports to the watch.
  int steps(const Work& work) const;
  // Searches parameters until `until`, a share of the budget; later it uses the middle values.
  void admit(Work& work, double until);

 private:
  void admit(Work& work, const Family& family, double until);
  std::vector<Path> usable(const Family& family);
  std::vector<Path> search(const Work& work, const std::vector<Path>& paths, double until);
  void search_at(const Work& work, const std::vector<Path>& paths, Operation operation, Bytes bytes, double until);
  bool open(const Path& path);

  Meter& meter_;
  const CampaignOptions& options_;
  const Profile* previous_;
  Findings& findings_;
  Comparer& comparer_;
  Watch& watch_;
};

}  // namespace waywiser
