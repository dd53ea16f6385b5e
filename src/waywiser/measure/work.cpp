#include "waywiser/measure/work.hpp"

#include <algorithm>

namespace waywiser {
namespace {

bool measured_now(const PairClass& old, const std::vector<Work>& work) {
  return std::any_of(work.begin(), work.end(), [&](const Work& entry) {
    const PairClass& mine = entry.subject->pair_class;
    return mine.processes == old.processes && mine.members.front() == old.members.front();
  });
}

void carry_over(Profile& profile, const PairClass& old, const Profile& previous) {
  const auto same = [&](const Path& path) {
    return path.processes == old.processes && path.source == old.members.front().first &&
           path.destination == old.members.front().second;
  };
  const auto carry = [&](auto& into, const auto& from) {
    std::copy_if(from.begin(), from.end(), std::back_inserter(into),
                 [&](const auto& entry) { return same(entry.path); });
  };
  profile.classes.push_back(old);
  carry(profile.series, previous.series);
  carry(profile.searched, previous.searched);
  carry(profile.first_use, previous.first_use);
  carry(profile.unavailable, previous.unavailable);
  carry(profile.rejected, previous.rejected);
}

}  // namespace

void add_series(std::vector<Series>& list, const PointStore& from, const Path& path, const Meter& meter) {
  for (const Operation operation : operations) {
    Series series{path, operation, from.points(path, operation), 0, {}, 0};
    if (series.points.empty()) continue;
    const Limit limit = meter.limit(path, operation);
    series.limit = limit.rate;
    series.limit_source = limit.source;
    if (operation == Operation::loaded) series.pairs = meter.pairs_at_once(path);
    list.push_back(std::move(series));
  }
}

Profile assemble(const Findings& findings, const Meter& meter, const Profile* previous) {
  Profile profile;
  for (const Work& work : findings.work) {
    profile.classes.push_back(work.subject->pair_class);
    for (const Path& path : work.paths) add_series(profile.series, findings.points, path, meter);
    for (const Path& path : work.searched) add_series(profile.searched, findings.searched, path, meter);
  }
  profile.first_use = findings.first_use;
  profile.unavailable = findings.unavailable;
  profile.rejected = findings.points.rejected();
  profile.simulated = meter.simulated();
  if (previous != nullptr)
    for (const PairClass& old : previous->classes)
      if (!measured_now(old, findings.work)) carry_over(profile, old, *previous);
  return profile;
}

}  // namespace waywiser
