#include "waywiser/measure/comparison.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/search.hpp"

namespace waywiser {
namespace {

// Above this the bytes of a path are verified once for each size, not once for each size and operation.
constexpr Bytes largest_verified_for_each_operation = 4 << 20;
constexpr int rounds_of_slow = 3;  // a path this much slower than the best gets no further rounds
constexpr double slow = 2.0;
constexpr double contending = 1.3;  // paths that must be known precisely
constexpr double alike = 1.04;      // two looks at one path
constexpr std::size_t most_notes = 64;

std::string text_of(const Path& path) { return pair_text(path) + " " + label(path); }

Seconds fastest(const Contest& contest) {
  Seconds best = 0;
  for (const Contender& contender : contest.contenders())
    if (!contender.failed && !contender.samples.empty() && (best == 0 || contender.typical() < best))
      best = contender.typical();
  return best;
}

bool precise(Contest& contest, double precision) {
  const Seconds best = fastest(contest);
  for (const Contender& contender : contest.contenders())
    if (contender.active && contender.typical() < contending * best &&
        relative_error(summarize(contender.samples)) > precision)
      return false;
  return true;
}

// Even the best sample must be slow: what disturbs a sample only ever adds to it.
void drop_slow(Contest& contest) {
  const Seconds best = fastest(contest);
  for (Contender& contender : contest.contenders())
    if (contender.active && contender.least() > slow * best) contender.active = false;
}

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

Contest Comparer::enter_all(const std::vector<Path>& paths, Operation operation, Bytes bytes, bool again) {
  Contest contest(meter_, operation, bytes, ++seed_);
  for (const Path& path : paths) {
    if (!keep_on_()) break;
    const bool wanted = again ? store_.find(path, operation, bytes) != nullptr : missing(path, operation, bytes);
    if (wanted && intact(path, operation, bytes)) contest.enter(path);
  }
  return contest;
}

int Comparer::run_rounds(Contest& contest, const Effort& effort) {
  const Seconds start = meter_.now();
  int rounds = 0;
  while (rounds < effort.most && keep_on_()) {
    contest.round();
    ++rounds;
    if (rounds >= rounds_of_slow) drop_slow(contest);
    if (rounds < effort.least) continue;
    if (meter_.now() - start >= effort.share || precise(contest, effort.precision)) break;
  }
  return rounds;
}

void Comparer::compare(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) {
  Contest contest = enter_all(paths, operation, bytes);
  if (contest.contenders().empty()) return;
  const int rounds = run_rounds(contest, effort);
  // Stopped by the user: an unfinished comparison would favour nobody, but say little; the next run repeats it.
  if (rounds >= std::min(effort.least, rounds_of_slow)) settle(contest, operation, bytes, store_);
}

bool Comparer::compare_again(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) {
  Contest contest = enter_all(paths, operation, bytes, true);
  if (run_rounds(contest, effort) < std::min(effort.least, rounds_of_slow)) return true;
  const Seconds best = fastest(contest);
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
  Contest contest = enter_all(paths, operation, bytes);
  halve(contest, keep_on_);
  settle(contest, operation, bytes, searched);
}

void Comparer::settle(Contest& contest, Operation operation, Bytes bytes, PointStore& into) {
  for (const Contender& contender : contest.contenders()) {
    if (contender.impossible) {  // what else it said cannot be trusted either
      store_.reject(contender.path, operation, 0, "at " + format_bytes(bytes) + ": " + *contender.failed);
    } else if (contender.failed) {
      store_.reject(contender.path, operation, bytes, *contender.failed);
    } else if (!contender.samples.empty()) {
      into.add(contender.path, operation, make_point(contender, bytes, true));
      note(contender, operation, bytes);
    }
  }
}

void Comparer::note(const Contender& contender, Operation operation, Bytes bytes) {
  std::optional<std::string> disturbed;
  if (contender.disturbed != 0)
    disturbed = std::to_string(contender.disturbed) + " of " + std::to_string(contender.samples.size()) +
                " samples were disturbed: " + contender.disturbance;
  for (const auto& remark : {drift_note(contender.samples), bimodality_note(contender.samples), disturbed})
    if (remark && notes_.size() < most_notes)
      notes_.insert(text_of(contender.path) + " " + std::string(name(operation)) + " " + format_bytes(bytes) + ": " +
                    *remark);
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
