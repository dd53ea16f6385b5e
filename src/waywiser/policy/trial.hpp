#pragma once

#include <functional>
#include <optional>

#include "waywiser/measure/path_contest.hpp"
#include "waywiser/policy/verification.hpp"
#include "waywiser/policy/verification_cases.hpp"

namespace waywiser {

// One case under test. First all paths run, to find the fastest other one; those samples have no other use, since the
// smallest of several noisy medians is biased low. Then that rival and the chosen path run in fresh pairs of rounds, in
// several sittings.
class Trial {
 public:
  Trial(VerificationCase entry, Meter& meter, std::uint64_t seed, std::function<bool()> keep_on)
      : case_(std::move(entry)), meter_(meter), seed_(seed), keep_on_(std::move(keep_on)) {}

  const VerificationCase& entry() const noexcept { return case_; }
  void find_rival();
  // One sitting. Does nothing without a rival.
  void duel(int rounds);
  bool has_rival() const noexcept { return rival_.has_value(); }
  int sittings() const noexcept { return sittings_; }
  int pairs() const noexcept { return static_cast<int>(chosen_.size()); }
  // Whether the interval of the ratio lies on one side of 5 %.
  bool decided() const;
  // From the duels; from the first samples if there was no time for a duel. Empty before find_rival() has ended.
  std::optional<VerifiedCase> result() const;

 private:
  VerificationCase case_;
  Meter& meter_;
  std::uint64_t seed_;
  std::function<bool()> keep_on_;
  bool begun_ = false;
  std::string failed_;
  Seconds first_seconds_ = 0;  // of the chosen path
  std::optional<Path> rival_;
  std::vector<Seconds> chosen_, other_;              // of the duels
  std::vector<Seconds> first_chosen_, first_other_;  // of the search for a rival
  int sittings_ = 0;
};

}  // namespace waywiser
