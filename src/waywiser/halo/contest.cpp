#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "waywiser/base/fingerprint_hash.hpp"
#include "waywiser/halo/agreement.hpp"
#include "waywiser/halo/halo_state.hpp"

namespace waywiser {
namespace {

constexpr Seconds sample_time = 500e-6;  // a sample is a mean of as many exchanges as fit
constexpr int most_exchanges = 100;
constexpr int most_rounds = 10000;

// The variants that are available, timed in turn. All times are those of the slowest rank, so all ranks go alike.
class HaloContest {
 public:
  HaloContest(Group& group, Seconds begun) : group_(group), begun_(begun) {}

  void add(HaloVariant variant, std::unique_ptr<HaloRun> run) { all_.push_back({variant, std::move(run), 1, {}}); }

  void run(Seconds seconds) {
    std::vector<Seconds> once;
    for (Entry& each : all_) once.push_back(time(each));
    slowest(once);
    for (std::size_t i = 0; i < all_.size(); ++i)
      all_[i].exchanges =
          static_cast<int>(std::clamp(sample_time / std::max(once[i], 1e-9), 1.0, 1.0 * most_exchanges));
    for (int round = 0; round < most_rounds && (round == 0 || took_ < seconds); ++round) sample(round);
  }

  Seconds took() const { return took_; }
  std::vector<Seconds> samples(HaloVariant variant) { return find(variant).samples; }
  HaloCounts counts(HaloVariant variant) { return find(variant).run->counts(); }
  std::unique_ptr<HaloRun> take(HaloVariant variant) { return std::move(find(variant).run); }

 private:
  struct Entry {
    HaloVariant variant;
    std::unique_ptr<HaloRun> run;
    int exchanges = 1;
    std::vector<Seconds> samples;
  };

  Entry& find(HaloVariant variant) { return *std::ranges::find(all_, variant, &Entry::variant); }

  Seconds time(Entry& entry) {
    group_.barrier();
    const Seconds first = now_seconds();
    for (int i = 0; i < entry.exchanges; ++i) {
      entry.run->start(nullptr);
      entry.run->finish();
    }
    return (now_seconds() - first) / entry.exchanges;
  }
  // Each round begins with another variant.
  void sample(int round) {
    std::vector<Seconds> times(all_.size() + 1);
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(round)) % all_.size();
      times[which] = time(all_[which]);
    }
    times.back() = now_seconds() - begun_;
    slowest(times);
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].samples.push_back(times[i]);
    took_ = times.back();
  }
  void slowest(std::vector<Seconds>& times) {
    group_.all_reduce(std::span<const Seconds>(times), std::span(times), ReduceOp::max);
  }

  Group& group_;
  const Seconds begun_;
  Seconds took_ = 0;
  std::vector<Entry> all_;
};

std::uint64_t hash_of(const std::string& text) {
  FingerprintHash hash;
  hash.add(text);
  return std::stoull(hash.hexadecimal(), nullptr, 16);
}

// Tries to prepare each variant; returns them without samples.
std::vector<HaloSamples> enter(HaloContest& contest,
                               const std::function<std::unique_ptr<HaloRun>(HaloVariant)>& prepared) {
  std::vector<HaloSamples> all;
  for (const HaloVariant each : halo_variants) {
    all.push_back({each, {}, {}});
    try {
      contest.add(each, prepared(each));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      all.back().why_unavailable = error.what();
    }
  }
  return all;
}

}  // namespace

const HaloTuning& HaloExchange::tune(Seconds seconds) {
  State& state = *state_;
  state.check_is_over("it is tuned");
  throw_at_all(state.group, failure_of([&] {
                 if (!(seconds > 0) || !std::isfinite(seconds))
                   throw Error(ErrorKind::invalid_input, "a halo exchange is tuned for a time above 0");
               }));
  require_equal(state.group, std::bit_cast<std::uint64_t>(seconds), "time to tune for");
  state.adopt(state.variant, nullptr);  // its memory on the GPU is free for the contest
  HaloContest contest(state.group, now_seconds());
  std::vector<HaloSamples> samples = enter(contest, [&](HaloVariant each) { return state.prepared(each); });
  contest.run(seconds);
  for (HaloSamples& each : samples)
    if (each.why_unavailable.empty()) each.samples = contest.samples(each.variant);
  HaloTuning tuning = tuning_of(std::move(samples));
  tuning.took = contest.took();
  tuning.virtual_gpus = state.any_on_virtual_gpu;
  require_equal(state.group, hash_of(waywiser::explain(tuning)), "answer of tune()");
  for (const HaloTime& each : tuning.times)
    if (each.why_unavailable.empty() && each.variant != tuning.chosen)
      state.counts[static_cast<std::size_t>(each.variant)] += contest.counts(each.variant);
  state.adopt(tuning.chosen, contest.take(tuning.chosen));
  return state.tuning.emplace(std::move(tuning));
}

}  // namespace waywiser
