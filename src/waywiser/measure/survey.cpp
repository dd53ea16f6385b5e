#include "waywiser/measure/survey.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/comparison.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/watch.hpp"

namespace waywiser {
namespace {

constexpr Bytes large = 64u << 20, large_quick = 16u << 20, small = 8;
constexpr Operation surveyed[] = {Operation::streaming, Operation::latency, Operation::bidirectional};

// A way through a third GPU is that pair's own.
bool fits_every_pair(const Path& path) {
  return std::ranges::none_of(path.parameters, [](const auto& parameter) {
    return parameter.first == "via" || parameter.first.ends_with(".via");
  });
}

// At the nearest measured size that is not above, else the smallest.
Seconds near(const PointStore& known, const Path& path, Operation operation, Bytes bytes) {
  Seconds per_byte = 0;
  for (const Point& point : known.points(path, operation))
    if (per_byte == 0 || point.bytes <= bytes) per_byte = point.seconds / static_cast<double>(point.bytes);
  return per_byte;
}

const Path* fastest_path(const PointStore& known, const std::vector<Path>& paths, Operation operation, Bytes bytes) {
  const Path* best = nullptr;
  Seconds least = 0;
  for (const Path& path : paths) {
    const Seconds seconds = fits_every_pair(path) ? near(known, path, operation, bytes) : 0;
    if (seconds > 0 && (best == nullptr || seconds < least)) {
      best = &path;
      least = seconds;
    }
  }
  return best;
}

}  // namespace

Survey::Survey(Meter& meter, const CampaignOptions& options, const Profile* previous, Watch& watch)
    : meter_(meter), options_(options), watch_(watch) {
  if (previous == nullptr) return;
  points_.add(previous->survey);
  for (const Series& series : previous->survey)
    if (!std::ranges::count(paths_, series.path)) paths_.push_back(series.path);
}

Bytes Survey::size(Operation operation) const {
  const Bytes wanted = operation == Operation::latency ? small : options_.quick ? large_quick : large;
  return std::clamp(wanted, options_.min_bytes, options_.max_bytes);
}

void Survey::run(const Findings& findings, double until) {
  if (!options_.survey) return;
  for (const Operation operation : surveyed)
    for (const Work& work : findings.work)
      if (std::ranges::count(work.operations, operation) && work.subject->pair_class.processes == 1 &&
          work.subject->pair_class.members.size() > 1)
        measure(work, findings.points, operation, until);
}

void Survey::measure(const Work& work, const PointStore& known, Operation operation, double until) {
  const Path* best = fastest_path(known, work.paths, operation, size(operation));
  if (best == nullptr) return;
  const Bytes bytes = std::min(size(operation), meter_.largest(*best));
  Comparer comparer(meter_, points_, options_.seed, [this] { return watch_.keep_on(); });
  Effort effort;
  effort.least = 3;
  effort.most = 9;
  effort.share = std::max(0.0, watch_.left(until)) / 50;
  for (const auto& [source, destination] : work.subject->pair_class.members) {
    const Path path = for_pair(*best, source, destination);
    if (watch_.left(until) <= comparer.least_seconds({path}, operation, bytes, effort)) return;
    if (!comparer.missing(path, operation, bytes) || meter_.why_unavailable(path)) continue;
    if (!watch_.begin("every pair: " + pair_text(path) + " " + std::string(name(operation)))) return;
    comparer.compare({path}, operation, bytes, effort);
    if (!std::ranges::count(paths_, path)) paths_.push_back(path);
  }
}

void Survey::enter(Profile& profile) const {
  for (const Path& path : paths_) add_series(profile.survey, points_, path, meter_);
  for (const Rejected& entry : points_.rejected()) profile.rejected.push_back(entry);
}

}  // namespace waywiser
