#include "waywiser/policy/verification.hpp"

#include <algorithm>
#include <random>
#include <tuple>

#include "waywiser/measure/watch.hpp"
#include "waywiser/policy/trial.hpp"

namespace waywiser {
namespace {

constexpr double first_share = 0.3;  // of the budget, for finding rivals
constexpr double late_share = 0.65;  // until then, rivals where all paths together are slow

class Verifier {
 public:
  Verifier(const Profile& profile, const Plan& plan, Meter& meter, const CampaignOptions& options,
           const ProgressCallback& progress)
      : options_(options), watch_(meter, options.budget_seconds, progress), random_(options.seed + 17) {
    const auto keep_on = [this] { return watch_.keep_on(); };
    std::uint64_t seed = options.seed + 1000;
    for (VerificationCase& entry : verification_cases(profile, Chooser(plan), options))
      trials_.emplace_back(std::move(entry), meter, ++seed, keep_on);
    for (Trial& trial : trials_) order_.push_back(&trial);
  }

  Verification run() {
    watch_.expect(static_cast<int>(order_.size()) * 2);
    find_rivals();
    sit(false);
    for (Trial* trial : late_) find_rival(*trial, late_share);
    while (sit(true)) {
    }
    return result();
  }

 private:
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_() % i]);
  }

  // In random order, so that a budget that ends early leaves a fair sample; what takes far more than its share last.
  void find_rivals() {
    shuffle();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Seconds fair = watch_.left(first_share) / static_cast<double>(order_.size() - i);
      if (4 * fair < cost(*order_[i]))
        late_.push_back(order_[i]);
      else
        find_rival(*order_[i], first_share);
    }
  }

  // Warm-up and the rounds that even a slow path takes part in.
  static Seconds cost(const Trial& trial) { return 4 * trial.entry().expected; }

  void find_rival(Trial& trial, double until) {
    if (watch_.left(until) > cost(trial) && watch_.begin(label_of(trial))) trial.find_rival();
    watch_.finish_step();
  }

  static std::string label_of(const Trial& trial) {
    return "verify " + pair_text(trial.entry().chosen) + " " + std::string(name(trial.entry().operation)) + " " +
           format_bytes(trial.entry().bytes);
  }

  // One sitting of each duel, or of the undecided ones. False if there was none.
  bool sit(bool undecided_only) {
    shuffle();
    int sat = 0;
    const int rounds = 5;
    for (Trial* trial : order_) {
      const bool wanted = trial->has_rival() && trial->pairs() < most_pairs() && !(undecided_only && trial->decided());
      const Seconds seconds = wanted ? 2 * (rounds + 2) * seconds_of(*trial) : 0;
      if (wanted && watch_.left() > seconds && watch_.begin(label_of(*trial))) {
        trial->duel(rounds);
        ++sat;
      }
      if (!undecided_only) watch_.finish_step();
    }
    return sat > 0 && !watch_.stopped();
  }

  int most_pairs() const { return options_.quick ? 60 : 120; }

  static Seconds seconds_of(const Trial& trial) {
    const auto so_far = trial.result();
    return std::max(sample_aim(trial.entry().operation), so_far ? so_far->chosen_seconds : 0);
  }

  Verification result() const {
    Verification found;
    for (const Trial& trial : trials_) {
      if (auto entry = trial.result())
        found.cases.push_back(std::move(*entry));
      else
        ++found.skipped;
    }
    std::sort(found.cases.begin(), found.cases.end(), [](const VerifiedCase& a, const VerifiedCase& b) {
      return std::tuple(a.chosen.processes, a.chosen.source, a.chosen.destination, a.operation, a.bytes) <
             std::tuple(b.chosen.processes, b.chosen.source, b.chosen.destination, b.operation, b.bytes);
    });
    found.interrupted = watch_.stopped();
    return found;
  }

  const CampaignOptions& options_;
  Watch watch_;
  std::mt19937_64 random_;
  std::vector<Trial> trials_;
  std::vector<Trial*> order_, late_;
};

Json to_json(const VerifiedCase& entry) {
  return {{"source", text(entry.chosen.source)},
          {"destination", text(entry.chosen.destination)},
          {"processes", entry.chosen.processes},
          {"operation", name(entry.operation)},
          {"bytes", entry.bytes},
          {"chosen", label(entry.chosen)},
          {"chosen_seconds", entry.chosen_seconds},
          {"best", label(entry.best)},
          {"best_seconds", entry.best_seconds},
          {"ratio", entry.ratio},
          {"ratio_low", entry.ratio_interval.low},
          {"ratio_high", entry.ratio_interval.high},
          {"pairs", entry.pairs},
          {"within_5_percent", entry.within()},
          {"equal", entry.equal},
          {"failed", entry.failed}};
}

}  // namespace

Verification verify_plan(const Profile& profile, const Plan& plan, Meter& meter, const CampaignOptions& options,
                         const ProgressCallback& progress) {
  return Verifier(profile, plan, meter, options, progress).run();
}

Json to_json(const Verification& verification) {
  int within = 0;
  std::vector<double> ratios;
  Json rows = Json::array();
  for (const VerifiedCase& entry : verification.cases) {
    within += entry.within();
    ratios.push_back(entry.ratio);
    rows.push_back(to_json(entry));
  }
  std::sort(ratios.begin(), ratios.end());
  return {{"cases", verification.cases.size()},
          {"within_5_percent", within},
          {"median_ratio", ratios.empty() ? 1 : quantile(ratios, 0.5)},
          {"ratio_95", ratios.empty() ? 1 : quantile(ratios, 0.95)},
          {"worst_ratio", ratios.empty() ? 1 : ratios.back()},
          {"skipped", verification.skipped},
          {"interrupted", verification.interrupted},
          {"rows", rows}};
}

}  // namespace waywiser
