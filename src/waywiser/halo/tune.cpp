#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/contest.hpp"
#include "waywiser/halo/halo_state.hpp"
#include "waywiser/halo/kept_answers.hpp"
#include "waywiser/halo/samples.hpp"
#include "waywiser/halo/side_kind.hpp"

namespace waywiser {
namespace {

constexpr int most_rounds = 10000, kind_rounds = 7, last_rounds = 7;

std::uint64_t hash_of(const HaloTuning& tuning) {
  FingerprintHash hash;
  hash.add(explain(tuning));
  for (const HaloKindTimes& each : tuning.kinds) {
    hash.add(each.key);
    hash.add(name(each.chosen));
  }
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

}  // namespace

// Measures each variant for all sides first, then mixes: one kind of sides after the other gets the variant with which
// the whole exchange was the fastest, while the others are as they were. At last the mix meets the best single variant.
class HaloExchange::State::Tuner {
 public:
  Tuner(State& state, Seconds seconds) : state_(state), seconds_(seconds), begun_(now_seconds()) {}

  void run() {
    const std::vector<std::uint64_t> kinds = state_.kinds_of_all();
    by_one_variant(kinds.size() > 1 ? seconds_ / 2 : seconds_);
    if (kinds.size() > 1) by_kind(kinds);
    tuning.took = took_;
    tuning.virtual_gpus = state_.any_on_virtual_gpu;
  }

  HaloTuning tuning;
  HaloChoice winner;
  std::unique_ptr<HaloRun> fastest;

 private:
  // Enters a choice; false if it is unavailable.
  bool enter(HaloContest& contest, std::vector<HaloSamples>& samples, HaloVariant called, const HaloChoice& choice) {
    samples.push_back({called, {}, {}});
    std::unique_ptr<HaloRun> run;
    try {
      run = state_.prepared(choice);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      samples.back().why_unavailable = error.what();
      return false;
    }
    contest.enter(std::move(run));
    return true;
  }
  HaloTuning result(const HaloContest& contest, std::vector<HaloSamples> samples) {
    took_ = contest.took();
    std::size_t next = 0;
    for (HaloSamples& each : samples)
      if (each.why_unavailable.empty()) each.samples = contest.samples(next++);
    return tuning_of(std::move(samples));
  }
  // Takes the fastest run; adds what the others have done to the counts.
  void settle(HaloContest& contest, const HaloTuning& of) {
    std::size_t next = 0;
    for (const HaloTime& each : of.times) {
      if (!each.why_unavailable.empty()) continue;
      if (each.variant == of.chosen)
        fastest = contest.release(next++);
      else
        state_.counts[static_cast<std::size_t>(each.variant)] += contest.counts(next++);
    }
  }

  void by_one_variant(Seconds until) {
    HaloContest contest(state_.group, begun_);
    std::vector<HaloSamples> samples;
    for (const HaloVariant each : halo_variants) enter(contest, samples, each, state_.all_by(each));
    contest.run(until, 1, most_rounds);
    tuning = result(contest, std::move(samples));
    settle(contest, tuning);
    winner = state_.all_by(tuning.chosen);
  }

  // Those that were measured and can be mixed, the fastest first.
  std::vector<HaloVariant> candidates() const {
    std::vector<const HaloTime*> measured;
    for (const HaloTime& each : tuning.times)
      if (each.why_unavailable.empty() && is_mixable(each.variant)) measured.push_back(&each);
    std::ranges::stable_sort(measured, {}, &HaloTime::median);
    std::vector<HaloVariant> variants;
    std::ranges::transform(measured, std::back_inserter(variants), [](const HaloTime* each) { return each->variant; });
    return variants;
  }

  void by_kind(const std::vector<std::uint64_t>& kinds) {
    const std::vector<HaloVariant> variants = candidates();
    if (variants.size() < 2) return;
    tuning.base = variants.front();
    for (const std::uint64_t kind : kinds) {
      if (took_ >= seconds_ * 3 / 4) break;
      try_kind(kind, variants);
    }
    const HaloChoice mix = state_.by_kinds(tuning);
    if (mix.variant != HaloVariant::mixed) return;
    HaloContest contest(state_.group, begun_);
    std::vector<HaloSamples> samples = {{tuning.chosen, {}, {}}};
    contest.enter(std::move(fastest));
    enter(contest, samples, HaloVariant::mixed, mix);
    contest.run(seconds_, last_rounds, most_rounds);
    const HaloTuning last = result(contest, std::move(samples));
    settle(contest, last);
    if (last.chosen == HaloVariant::mixed) winner = mix;
    add_last(tuning, last);
  }

  void try_kind(std::uint64_t kind, const std::vector<HaloVariant>& variants) {
    HaloContest contest(state_.group, begun_);
    std::vector<HaloSamples> samples;
    tuning.kinds.push_back({kind, words_of(kind_of(kind)), tuning.base, {}});
    HaloKindTimes& tried = tuning.kinds.back();
    std::vector<HaloVariant> entered;  // a mix may be of one variant
    for (const HaloVariant each : variants) {
      tried.chosen = each;
      const HaloChoice choice = state_.by_kinds(tuning);
      if (enter(contest, samples, each, choice)) entered.push_back(choice.variant);
    }
    tried.chosen = tuning.base;
    if (contest.size() == 0) return tuning.kinds.pop_back();
    contest.run(0, kind_rounds, kind_rounds);
    HaloTuning answer = result(contest, std::move(samples));
    tried.chosen = answer.chosen;
    tried.times = std::move(answer.times);
    for (std::size_t i = 0; i < contest.size(); ++i)
      state_.counts[static_cast<std::size_t>(entered[i])] += contest.counts(i);
  }

  State& state_;
  const Seconds seconds_, begun_;
  Seconds took_ = 0;
};

std::vector<std::uint64_t> HaloExchange::State::kinds_of_all() {
  std::vector<bool> same;
  for (int rank = 0; rank < group.size(); ++rank) same.push_back(same_machine(group, rank));
  kinds = kinds_of_sides(partition, boundary, same);
  std::vector<std::uint64_t> distinct = union_of_all(group, kinds);
  std::erase(distinct, 0);
  std::ranges::stable_sort(distinct, std::greater<>(), [](std::uint64_t each) { return kind_of(each).magnitude; });
  return distinct;
}

HaloChoice HaloExchange::State::by_kinds(const HaloTuning& answer) {
  std::vector<HaloVariant> gives;
  for (const std::uint64_t kind : kinds) {
    const auto found = std::ranges::find(answer.kinds, kind, &HaloKindTimes::key);
    gives.push_back(found == answer.kinds.end() ? answer.base : found->chosen);
  }
  return agreed(std::move(gives));
}

bool HaloExchange::State::adopt_known(const HaloTuning& known) {
  kinds_of_all();
  const HaloChoice wanted = known.chosen == HaloVariant::mixed ? by_kinds(known) : all_by(known.chosen);
  try {
    adopt(wanted, prepared(wanted));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    return false;
  }
  tuning = known;
  tuning->virtual_gpus = any_on_virtual_gpu;
  return true;
}

void HaloExchange::State::tune(Seconds seconds, const std::filesystem::path& file) {
  std::optional<KeptHaloAnswers> answers;
  if (!file.empty()) {
    answers.emplace(group, file, boundary, place, any_on_gpu ? "gpu" : "host");
    if (const auto known = answers->known(); known && adopt_known(*known)) return;
  }
  adopt(choice, nullptr);  // its memory on the GPU is free for the contest
  Tuner tuner(*this, seconds);
  tuner.run();
  require_equal(group, hash_of(tuner.tuning), "answer of tune()");
  adopt(std::move(tuner.winner), std::move(tuner.fastest));
  tuning.emplace(std::move(tuner.tuning));
  if (answers) answers->keep(*tuning);
}

const HaloTuning& HaloExchange::tune(Seconds seconds) { return tune(seconds, {}); }

const HaloTuning& HaloExchange::tune(Seconds seconds, const std::filesystem::path& file) {
  const auto alone = held().alone();
  State& state = held();
  state.check_is_over("it is tuned");
  throw_at_all(state.group, failure_of([&] {
                 if (!(seconds > 0) || !std::isfinite(seconds))
                   throw Error(ErrorKind::invalid_input, "a halo exchange is tuned for a time above 0");
               }));
  require_equal(state.group, std::bit_cast<std::uint64_t>(seconds), "time to tune for");
  require_equal(state.group, file.empty() ? 0 : 1, "use of a file of answers");
  state.tune(seconds, file);
  state.tuned_for = seconds;
  state.tuned_file = file;
  return *state.tuning;
}

}  // namespace waywiser
