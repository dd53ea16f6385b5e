#include "waywiser/measure/admission.hpp"

#include <algorithm>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/search.hpp"
#include "waywiser/measure/size_grid.hpp"

namespace waywiser {
namespace {

constexpr std::size_t worth_a_search = 3;  // paths of one family

bool contains(const std::vector<Path>& paths, const Path& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

std::vector<Operation> search_operations(const Work& work) {
  std::vector<Operation> chosen;
  for (const Operation operation : {Operation::latency, Operation::streaming})
    if (std::count(work.operations.begin(), work.operations.end(), operation)) chosen.push_back(operation);
  if (chosen.empty() && !work.operations.empty()) chosen.push_back(work.operations.front());
  return chosen;
}

}  // namespace

int Admission::steps(const Work& work) const {
  std::size_t steps = 0;
  for (const Family& family : work.subject->families)
    if (expand(family).size() >= worth_a_search) steps += probe_sizes(options_).size() * search_operations(work).size();
  return static_cast<int>(steps);
}

void Admission::admit(Work& work, double until) {
  for (const Family& family : work.subject->families) admit(work, family, until);
}

// The paths of a family that can be used; the reason of the others once for the family.
std::vector<Path> Admission::usable(const Family& family) {
  std::vector<Path> paths;
  std::optional<std::string> reason;
  for (const Path& path : expand(family)) {
    auto why = meter_.why_unavailable(path);
    if (!why) paths.push_back(path);
    if (why && !reason) reason = std::move(why);
  }
  if (paths.empty() && reason) findings_.unavailable.push_back({family.base, *reason});
  return paths;
}

void Admission::admit(Work& work, const Family& family, double until) {
  const std::vector<Path> paths = usable(family);
  std::vector<Path> survivors;
  for (const Path& path : paths)
    if (!findings_.points.empty(path)) survivors.push_back(path);
  if (survivors.empty()) survivors = paths.size() >= worth_a_search ? search(work, paths, until) : paths;
  for (const Path& path : paths) {
    if (!contains(survivors, path))
      work.searched.push_back(path);
    else if (open(path))
      work.paths.push_back(path);
  }
}

std::vector<Path> Admission::search(const Work& work, const std::vector<Path>& paths, double until) {
  std::vector<std::vector<Seconds>> times(paths.size());
  for (const Operation operation : search_operations(work))
    for (const Bytes bytes : probe_sizes(options_)) {
      search_at(work, paths, operation, bytes, until);
      for (std::size_t i = 0; i < paths.size(); ++i) {
        const Point* point = findings_.searched.find(paths[i], operation, bytes);
        times[i].push_back(point != nullptr && findings_.points.rejection(paths[i], operation, bytes) == nullptr
                               ? point->seconds
                               : std::numeric_limits<Seconds>::infinity());
      }
      watch_.finish_step();
    }
  std::vector<Path> survivors;
  for (const std::size_t i : cover(times, options_.quick ? 2 : 4)) survivors.push_back(paths[i]);
  if (survivors.empty()) survivors.push_back(paths[paths.size() / 2]);
  return survivors;
}

void Admission::search_at(const Work& work, const std::vector<Path>& paths, Operation operation, Bytes bytes,
                          double until) {
  const bool known = std::any_of(paths.begin(), paths.end(), [&](const Path& path) {
    return findings_.searched.find(path, operation, bytes) != nullptr;
  });
  if (known || watch_.left(until) <= 0 || !watch_.begin(work.subject->pair_class, operation, bytes)) return;
  comparer_.search(paths, operation, bytes, findings_.searched);
}

// First use, unless it is known.
bool Admission::open(const Path& path) {
  if (!watch_.keep_on()) return true;
  if (previous_ != nullptr)
    for (const FirstUse& entry : previous_->first_use)
      if (entry.path == path) {
        findings_.first_use.push_back(entry);
        return true;
      }
  try {
    findings_.first_use.push_back({path, std::max(0.0, meter_.first_use(path))});
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    findings_.unavailable.push_back({path, error.what()});
    return false;
  }
}

}  // namespace waywiser
