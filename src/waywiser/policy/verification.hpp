#pragma once

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/measure/statistics.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

inline constexpr double limit_of_loss = 1.05;

// One case: a class of pairs, an operation and a size that was not used for choosing.
struct VerifiedCase {
  Path chosen, best;
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  Seconds chosen_seconds = 0, best_seconds = 0;
  double ratio = 1;  // median over rounds of chosen / best, measured next to each other; 1 if chosen is best
  Interval ratio_interval{1, 1};
  bool equal = false;  // the interval of the ratio includes 1
  int pairs = 0;       // of samples in the ratio; 0: no other path came near
  std::string failed;  // why the chosen path failed here: the worst outcome, with a ratio of 1000
  bool within() const { return failed.empty() && ratio <= limit_of_loss; }
};

struct Verification {
  std::vector<VerifiedCase> cases;
  int skipped = 0;  // no time was left for them
  bool interrupted = false;
};

// Measures the chosen path against all others in interleaved rounds, to find the fastest other one; then these two in
// fresh pairs of rounds, at several times, until it is clear on which side of 5 % their ratio lies. A case is within 5
// % if the median of these paired ratios is at most 1.05; "equal" alone does not count.
Verification verify_plan(const Profile& profile, const Plan& plan, Meter& meter, const CampaignOptions& options,
                         const ProgressCallback& progress);

Json to_json(const Verification& verification);

}  // namespace waywiser
