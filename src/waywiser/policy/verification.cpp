#include "waywiser/policy/verification.hpp"

#include <algorithm>
#include <set>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/contest.hpp"
#include "waywiser/measure/watch.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr double hopeless = 1.5;  // a path this much slower than the best so far needs no further rounds
constexpr double limit_of_loss = 1.05;
constexpr Bytes large = 16 << 20;  // every transfer of this size takes long: fewer rounds

struct Case {
  const PairClass* pair_class;
  Operation operation;
  Bytes bytes;
  Path chosen;
  std::vector<Path> others;
  Seconds expected;  // of one round, from the profile
};

// 3, 5, 12, 20, 48, ...: between the powers of two. Most are whole words, as most messages are; every sixth is odd.
std::vector<Bytes> sizes_between(Bytes least, Bytes most, bool quick) {
  std::vector<Bytes> sizes;
  for (int power = 0; power < 60; ++power) {
    if (quick && power % 2 == 1) continue;
    const Bytes unit = Bytes{1} << power;
    const Bytes size = (power / (quick ? 2 : 1)) % 2 == 0 ? 3 * unit : 2 * unit + unit / 2 + (power % 6 == 5 ? 1 : 0);
    if (size > least && size < most) sizes.push_back(size);
  }
  return sizes;
}

class Verifier {
 public:
  Verifier(const Profile& profile, const Plan& plan, Meter& meter, const CampaignOptions& options,
           const ProgressCallback& progress)
      : profile_(profile),
        chooser_(plan),
        meter_(meter),
        options_(options),
        watch_(meter, options.budget_seconds, progress),
        order_(mechanism_names(profile)) {}

  Verification run() {
    std::vector<Case> cases = all_cases();
    // In random order, so that a budget that ends early leaves a fair sample; what takes far more than its share last.
    std::mt19937_64 random(options_.seed + 17);
    for (std::size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random() % i]);
    watch_.expect(static_cast<int>(cases.size()));
    std::vector<const Case*> late;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Seconds fair = watch_.left() / static_cast<double>(cases.size() - i);
      if (cases[i].expected * rounds(cases[i].bytes) > 4 * fair)
        late.push_back(&cases[i]);
      else
        visit(cases[i]);
    }
    for (const Case* entry : late) visit(*entry);
    std::sort(result_.cases.begin(), result_.cases.end(), [](const VerifiedCase& a, const VerifiedCase& b) {
      return std::tuple(a.chosen.processes, a.chosen.source, a.chosen.destination, a.operation, a.bytes) <
             std::tuple(b.chosen.processes, b.chosen.source, b.chosen.destination, b.operation, b.bytes);
    });
    result_.interrupted = watch_.stopped();
    return std::move(result_);
  }

 private:
  // Here the order of mechanisms does not matter: all take part.
  static MechanismOrder mechanism_names(const Profile& profile) {
    MechanismOrder order;
    for (const Series& series : profile.series) order.push_back(series.path.mechanism);
    return order;
  }

  void visit(const Case& entry) {
    if (watch_.left() <= entry.expected * (rounds(entry.bytes) + 1)) {
      ++result_.skipped;
      return;
    }
    if (watch_.begin("verify " + pair_text(entry.chosen) + " " + std::string(name(entry.operation)) + " " +
                     format_bytes(entry.bytes)))
      verify(entry);
    watch_.finish_step();
  }

  std::vector<Case> all_cases() const {
    std::vector<Case> cases;
    for (const PairClass& pair_class : profile_.classes)
      for (const Operation operation : operations) {
        const Candidates all = candidates(profile_, pair_class, operation, order_);
        if (!all.series.empty() && all.measured_as == operation) add_cases(cases, pair_class, operation, all);
      }
    return cases;
  }

  void add_cases(std::vector<Case>& cases, const PairClass& pair_class, Operation operation,
                 const Candidates& all) const {
    const auto& [source, destination] = pair_class.members.front();
    Bytes least = ~Bytes{0}, most = 0;
    std::set<Bytes> used;
    for (const Cost& cost : all.costs)
      for (const Point& point : cost.points()) {
        used.insert(point.bytes);
        least = std::min(least, point.bytes);
        most = std::max(most, point.bytes);
      }
    for (const Bytes bytes : sizes_between(least, most, options_.quick)) {
      const PlanRow* row = chooser_.choose(source, destination, pair_class.processes, operation, bytes);
      if (row == nullptr || used.contains(bytes)) continue;
      Case entry{&pair_class, operation, bytes, row->path, {}, 0};
      for (std::size_t i = 0; i < all.series.size(); ++i) {
        if (!all.costs[i].known(static_cast<double>(bytes))) continue;
        entry.expected += std::max(sample_aim(operation), all.costs[i].seconds(static_cast<double>(bytes)));
        if (!(all.series[i]->path == row->path)) entry.others.push_back(all.series[i]->path);
      }
      cases.push_back(std::move(entry));
    }
  }

  static int rounds(Bytes bytes) { return bytes < large ? 7 : 5; }

  void verify(const Case& entry) {
    Contest contest(meter_, entry.operation, entry.bytes, options_.seed + 1000 + result_.cases.size());
    contest.enter(entry.chosen);
    for (const Path& path : entry.others)
      if (watch_.keep_on()) contest.enter(path);
    for (int round = 0; round < rounds(entry.bytes) && watch_.keep_on(); ++round) {
      contest.round();
      if (round >= 2 || entry.bytes >= large) drop_hopeless(contest);
    }
    const Contender& chosen = contest.contenders().front();
    if (watch_.stopped()) return;
    if (chosen.samples.size() < 3) return add_failure(entry, chosen);
    const Contender* best = &chosen;
    for (const Contender& contender : contest.contenders())
      if (!contender.failed && contender.samples.size() >= 3 && contender.typical() < best->typical())
        best = &contender;
    VerifiedCase result;
    result.operation = entry.operation;
    result.bytes = entry.bytes;
    result.chosen = result.best = entry.chosen;
    result.chosen_seconds = result.best_seconds = chosen.typical();
    result.equal = true;
    if (best != &chosen && !duel(entry, best->path, result)) return;
    result_.cases.push_back(std::move(result));
  }

  static void drop_hopeless(Contest& contest) {
    Seconds best = contest.contenders().front().typical();
    for (const Contender& contender : contest.contenders())
      if (contender.active) best = std::min(best, contender.typical());
    for (std::size_t i = 1; i < contest.contenders().size(); ++i)
      if (Contender& contender = contest.contenders()[i]; contender.least() > hopeless * best) contender.active = false;
  }

  void add_failure(const Case& entry, const Contender& chosen) {
    VerifiedCase result;
    result.operation = entry.operation;
    result.bytes = entry.bytes;
    result.chosen = result.best = entry.chosen;
    result.ratio = 1000;
    result.ratio_interval = {1000, 1000};
    result.failed = chosen.failed.value_or("no time could be measured");
    result_.cases.push_back(std::move(result));
  }

  // Fresh pairs of rounds until it is clear on which side of 5 % the ratio lies. False when stopped.
  bool duel(const Case& entry, const Path& rival, VerifiedCase& result) {
    const int most = options_.quick ? 25 : 41;
    Contest contest(meter_, entry.operation, entry.bytes, options_.seed + 5000 + result_.cases.size());
    contest.enter(entry.chosen);
    contest.enter(rival);
    Summary ratio;
    for (int round = 1; round <= most; ++round) {
      if (!watch_.keep_on()) return false;
      contest.round();
      const auto& chosen = contest.contenders()[0].samples;
      const auto& other = contest.contenders()[1].samples;
      if (chosen.size() != other.size() || chosen.empty()) return true;  // the rival failed: it is no rival
      if (round < 9) continue;
      ratio = paired_ratio(chosen, other);
      if (ratio.interval.high < limit_of_loss || ratio.interval.low > limit_of_loss) break;
    }
    result.chosen_seconds = contest.contenders()[0].typical();
    result.best_seconds = contest.contenders()[1].typical();
    result.ratio_interval = ratio.interval;
    result.equal = ratio.interval.low <= 1 && ratio.interval.high >= 1;
    if (ratio.median <= 1) {  // it only looked faster
      result.best_seconds = result.chosen_seconds;
      return true;
    }
    result.best = rival;
    result.ratio = ratio.median;
    return true;
  }

  const Profile& profile_;
  Chooser chooser_;
  Meter& meter_;
  const CampaignOptions& options_;
  Watch watch_;
  MechanismOrder order_;
  Verification result_;
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
  double worst = 1;
  Json rows = Json::array();
  for (const VerifiedCase& entry : verification.cases) {
    within += entry.within();
    worst = std::max(worst, entry.ratio);
    rows.push_back(to_json(entry));
  }
  return {{"cases", verification.cases.size()},
          {"within_5_percent", within},
          {"worst_ratio", worst},
          {"skipped", verification.skipped},
          {"interrupted", verification.interrupted},
          {"rows", rows}};
}

}  // namespace waywiser
