#pragma once

#include <vector>

#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// A class of pairs with the paths that are measured for it.
struct Work {
  const Subject* subject;
  std::vector<Path> paths;     // survivors, in the order of enumeration
  std::vector<Path> searched;  // lost the search
  std::vector<Operation> operations;
};

// The results of a campaign so far.
struct Findings {
  std::vector<Work> work;
  PointStore points, searched;
  std::vector<FirstUse> first_use;
  std::vector<Unavailable> unavailable;
};

// Appends a path's points as a series for each operation that has some.
void add_series(std::vector<Series>& list, const PointStore& from, const Path& path, const Meter& meter);

// The findings as a profile, and what an earlier run measured for pairs that this one was not asked for.
Profile assemble(const Findings& findings, const Meter& meter, const Profile* previous);

}  // namespace waywiser
