#include "waywiser/measure/comparison.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/search.hpp"

namespace waywiser {
namespace {

// Above this the bytes of a path are verified once for each size, not once for each size and operation.
constexpr Bytes largest_verified_for_each_operation = 4 << 20;
constexpr int fewest_rounds = 3;  // of an answer
constexpr double alike = 1.04;    // two looks at a path that contends
constexpr std::size_t most_notes = 64;

std::string text_of(const Path& path) { return pair_text(path) + " " + label(path); }

}  // namespace

Comparer::Comparer(Meter& meter, PointStore& store, std::uint64_t seed, std::function<bool()> keep_on)
    : meter_(meter), store_(store), seed_(seed), keep_on_(std::move(keep_on)) {}

bool Comparer::missing(const Path& path, Operation operation, Bytes bytes) const {
  return store_.find(path, operation, bytes) == nullptr && store_.rejection(path, operation, bytes) == nullptr &&
         bytes >= meter_.smallest(path) && bytes <= meter_.largest(path);
}

// A path with wrong bytes is rejected for every operation.
bool Comparer::intact(const Path& path, Operation operation, Bytes bytes) {
  const bool for_each = bytes <= largest_verified_for_each_operation;
  const std::string key = text_of(path) + (for_each ? " " + std::string(name(operation)) : "");
  if (verified_.contains({key, bytes})) return true;
  const Seconds start = meter_.now();
  std::optional<std::string> reason;
  try {
    reason = meter_.verify(path, operation, bytes);
    if (reason)
      for (const Operation every : operations) store_.reject(path, every, bytes, *reason);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    reason = error.what();
    store_.reject(path, operation, bytes, *reason);
  }
  if (reason) return false;
  if (bytes >= (1 << 20)) verify_seconds_per_byte_ = (meter_.now() - start) / static_cast<double>(bytes);
  verified_.insert({key, bytes});
  return true;
}

PathContest Comparer::enter_all(const std::vector<Path>& paths, Operation operation, Bytes bytes, bool again) {
  PathContest contest(meter_, operation, bytes, ++seed_);
  for (const Path& path : paths) {
    if (!keep_on_()) break;
    const bool wanted = again ? store_.find(path, operation, bytes) != nullptr : missing(path, operation, bytes);
    if (wanted && intact(path, operation, bytes)) contest.enter(path);
  }
  return contest;
}

void Comparer::compare(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) {
  PathContest contest = enter_all(paths, operation, bytes);
  if (contest.contenders().empty()) return;
  const int rounds = contest.run(effort, keep_on_);
  // Stopped by the user: an unfinished comparison would favour nobody, but say little; the next run repeats it.
  if (rounds >= std::min(effort.least, fewest_rounds)) settle(contest, operation, bytes, store_);
}

bool Comparer::compare_again(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) {
  PathContest contest = enter_all(paths, operation, bytes, true);
  if (contest.run(effort, keep_on_) < std::min(effort.least, fewest_rounds)) return true;
  const Seconds best = contest.fastest();
  PointStore fresh;
  settle(contest, operation, bytes, fresh);
  bool agreed = true;
  for (const Path& path : paths) {
    const Point* now = fresh.find(path, operation, bytes);
    const Point* before = store_.find(path, operation, bytes);
    if (now == nullptr || before == nullptr) continue;
    const Seconds low = std::min(now->seconds, before->seconds), high = std::max(now->seconds, before->seconds);
    if (low < contending * best && high > alike * low) agreed = false;
    if (now->calm() == before->calm() ? now->seconds < before->seconds : now->calm()) store_.add(path, operation, *now);
  }
  return agreed;
}

void Comparer::search(const std::vector<Path>& paths, Operation operation, Bytes bytes, PointStore& searched) {
  PathContest contest = enter_all(paths, operation, bytes);
  halve(contest, keep_on_);
  settle(contest, operation, bytes, searched);
}

void Comparer::settle(const PathContest& contest, Operation operation, Bytes bytes, PointStore& into) {
  for (const Contender& contender : contest.contenders()) {
    const Path& path = contest.path(contender);
    if (contender.impossible) {  // what else it said cannot be trusted either
      store_.reject(path, operation, 0, "at " + format_bytes(bytes) + ": " + *contender.failed);
    } else if (contender.failed) {
      store_.reject(path, operation, bytes, *contender.failed);
    } else if (!contender.samples.empty()) {
      into.add(path, operation, make_point(contender, bytes, true));
      note(path, contender, operation, bytes);
    }
  }
}

void Comparer::note(const Path& path, const Contender& contender, Operation operation, Bytes bytes) {
  std::optional<std::string> disturbed;
  if (contender.disturbed != 0)
    disturbed = std::to_string(contender.disturbed) + " of " + std::to_string(contender.samples.size()) +
                " samples were disturbed: " + contender.disturbance;
  for (const auto& remark : {drift_note(contender.samples), bimodality_note(contender.samples), disturbed})
    if (remark && notes_.size() < most_notes)
      notes_.insert(text_of(path) + " " + std::string(name(operation)) + " " + format_bytes(bytes) + ": " + *remark);
}

Seconds Comparer::least_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes,
                                const Effort& effort) const {
  Seconds sum = 0;
  for (const Path& path : paths) {
    if (!missing(path, operation, bytes)) continue;
    Seconds each = 0;
    for (const Point& point : store_.points(path, operation))
      if (point.bytes < bytes) each = point.seconds * static_cast<double>(bytes) / static_cast<double>(point.bytes);
    // A small transfer costs no less than its calibrated sample.
    sum += std::max(each * (effort.least + 2), sample_aim(operation) * effort.least);
    if (bytes >= (1 << 20)) sum += verify_seconds_per_byte_ * static_cast<double>(bytes);
  }
  return sum;
}

Seconds Comparer::again_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes,
                                const Effort& effort) const {
  Seconds sum = 0;
  for (const Path& path : paths)
    if (const Point* point = store_.find(path, operation, bytes))
      sum += std::max(point->seconds, sample_aim(operation)) * (effort.least + 2);
  return sum;
}

}  // namespace waywiser
