#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "waywiser/measure/sample.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {

// One of those that a contest times, and its measurements so far.
struct Contender {
  std::size_t which = 0;  // its place among the contenders
  int repetitions = 1;    // of a turn, so that it takes about TurnLength::aim
  std::vector<Seconds> samples;
  std::vector<Seconds> cpu;
  std::vector<Seconds> each;          // single transfers, if they can be timed
  std::optional<std::string> failed;  // why it is rejected: an error, an impossible figure
  bool impossible = false;            // `failed` describes an impossible time
  int disturbed = 0;                  // samples that something from outside disturbed
  std::string disturbance;            // what
  bool active = true;

  Seconds typical() const { return samples.empty() ? 0 : median(samples); }
  Seconds least() const { return samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end()); }
};

// How long a turn of a contender is.
struct TurnLength {
  Seconds aim = 0;  // 0: each has one repetition
  int most_repetitions = 1;
  int looks = 4;  // untimed turns at most, to warm up and to find the repetitions
};

// Who is this much slower than the best need not be known precisely.
inline constexpr double contending = 1.3;

// The effort of a contest.
struct Effort {
  int least = 5, most = 31;  // rounds
  double precision = 0.025;  // half width of the confidence interval, as a fraction of the median; 0: not asked for
  Seconds share = 0;         // after the least rounds, stop when this much time is used
  double hopeless = 2.0;     // who is this much slower than the best gets no further rounds; 0: all go on
  int judged_from = 3;       // rounds before that
  bool keeps_first = false;  // the first contender always goes on
};

// Measures anything that has several ways in interleaved rounds, so that drift of the machine affects all of them
// alike. Who derives from it says what a turn is.
class Contest {
 public:
  Contest(const TurnLength& turn, std::uint64_t seed) : turn_(turn), random_(seed) {}
  virtual ~Contest() = default;

  // Warms the next contender up and finds its repetitions. A failure is kept in the contender.
  Contender& enter();
  // One turn of every active contender, in random order; every second round is the one before backwards, so that a
  // steady drift cancels.
  void round();
  // Rounds, until the active contenders that may be the best are known precisely, the share is used or `keep_on` is
  // false. Returns their number.
  int run(const Effort& effort, const std::function<bool()>& keep_on);
  std::vector<Contender>& contenders() noexcept { return contenders_; }
  const std::vector<Contender>& contenders() const noexcept { return contenders_; }
  // The least typical time; 0 if there is none.
  Seconds fastest() const;

 protected:
  Contest(Contest&&) = default;
  // The samples of one turn; what it throws ends the contest. If several processes take part, all times must be equal
  // at all of them.
  virtual std::vector<Sample> take(std::size_t which, int repetitions) = 0;
  // Whether the turn is one of those that do not count.
  bool looking() const noexcept { return looking_; }
  // The clock of budgets.
  virtual Seconds now() const { return now_seconds(); }
  // Why a median time is impossible; empty if it is possible.
  virtual std::optional<std::string> why_impossible(std::size_t, Seconds) const { return {}; }

 private:
  void take_turn(Contender& contender, bool keep);
  void drop_hopeless(const Effort& effort);
  bool precise(double precision) const;

  TurnLength turn_;
  bool looking_ = false;
  std::mt19937_64 random_;
  std::vector<std::size_t> order_;  // of the round before, unless that was backwards
  std::vector<Contender> contenders_;
};

// The summary of a contender as a point of a series.
Point make_point(const Contender& contender, Bytes bytes, bool verified);

}  // namespace waywiser
