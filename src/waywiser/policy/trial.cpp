#include "waywiser/policy/trial.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr std::size_t fewest = 3;
constexpr Effort first_look{
    .least = 5, .most = 5, .precision = 0, .hopeless = 1.5, .judged_from = 1, .keeps_first = true};
constexpr double no_rival = 1.1;    // nor a duel when it is this much slower than the chosen one
constexpr int fewest_pairs = 5;     // before a ratio decides
constexpr int fewest_sittings = 3;  // before a loss counts, some time apart: a disturbance may last longer than one

}  // namespace

void Trial::find_rival() {
  PathContest contest(meter_, case_.operation, case_.bytes, seed_);
  contest.enter(case_.chosen);
  for (const Path& path : case_.others)
    if (keep_on_()) contest.enter(path);
  contest.run(first_look, keep_on_);
  if (!keep_on_()) return;
  begun_ = true;
  const Contender& chosen = contest.contenders().front();
  if (chosen.samples.size() < fewest) {
    failed_ = chosen.failed.value_or("no time could be measured");
    return;
  }
  first_seconds_ = chosen.typical();
  const Contender* best = nullptr;
  for (const Contender& other : contest.contenders())
    if (&other != &chosen && !other.failed && other.samples.size() >= fewest &&
        (best == nullptr || other.typical() < best->typical()))
      best = &other;
  if (best == nullptr || best->typical() > no_rival * first_seconds_) return;
  rival_ = contest.path(*best);
  first_chosen_ = chosen.samples;
  first_other_ = best->samples;
}

void Trial::duel(int rounds) {
  if (!rival_) return;
  ++sittings_;
  PathContest contest(meter_, case_.operation, case_.bytes, seed_ + static_cast<std::uint64_t>(sittings_) * 7919);
  contest.enter(case_.chosen);
  contest.enter(*rival_);
  contest.run({.least = rounds, .most = rounds, .precision = 0, .hopeless = 0}, keep_on_);
  const Contender &chosen = contest.contenders()[0], &other = contest.contenders()[1];
  if (chosen.failed) failed_ = *chosen.failed;
  if (other.failed) rival_.reset();  // it is none
  const std::size_t pairs = std::min(chosen.samples.size(), other.samples.size());
  chosen_.insert(chosen_.end(), chosen.samples.begin(), chosen.samples.begin() + static_cast<std::ptrdiff_t>(pairs));
  other_.insert(other_.end(), other.samples.begin(), other.samples.begin() + static_cast<std::ptrdiff_t>(pairs));
}

bool Trial::decided() const {
  if (!rival_ || !failed_.empty()) return true;
  if (pairs() < fewest_pairs) return false;
  const Interval ratio = paired_ratio(chosen_, other_).interval;
  return ratio.high < limit_of_loss || (ratio.low > limit_of_loss && sittings_ >= fewest_sittings);
}

std::optional<VerifiedCase> Trial::result() const {
  if (!begun_) return {};
  VerifiedCase result;
  result.operation = case_.operation;
  result.bytes = case_.bytes;
  result.chosen = result.best = case_.chosen;
  if (!failed_.empty()) {
    result.ratio = 1000;
    result.ratio_interval = {1000, 1000};
    result.failed = failed_;
    return result;
  }
  result.chosen_seconds = result.best_seconds = first_seconds_;
  result.equal = true;
  if (!rival_) return result;
  const auto& chosen = chosen_.empty() ? first_chosen_ : chosen_;
  const auto& other = chosen_.empty() ? first_other_ : other_;
  const Summary ratio = paired_ratio(chosen, other);
  result.chosen_seconds = median(chosen);
  result.ratio_interval = ratio.interval;
  result.equal = ratio.interval.low <= 1 && ratio.interval.high >= 1;
  result.pairs = static_cast<int>(std::min(chosen.size(), other.size()));
  result.best_seconds = ratio.median > 1 ? median(other) : result.chosen_seconds;
  if (ratio.median <= 1) return result;
  result.best = *rival_;
  result.ratio = ratio.median;
  return result;
}

}  // namespace waywiser
