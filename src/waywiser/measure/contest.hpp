#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "waywiser/measure/meter.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {

// The duration of a sample: long compared with the clock's resolution, short compared with the time slices of a busy
// machine, so that most samples are not interrupted and the median is one of those.
Seconds sample_aim(Operation operation);

// One path in a contest, and its measurements so far.
struct Contender {
  Path path;
  int repetitions = 1;  // per sample, so that it takes about sample_aim()
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

// Measures several paths at one size in interleaved rounds, so that drift of the machine affects all of them alike.
class Contest {
 public:
  Contest(Meter& meter, Operation operation, Bytes bytes, std::uint64_t seed);

  // Warms the path up and finds its repetitions. A failure is kept in the contender.
  Contender& enter(const Path& path, int first_guess = 1);
  // One sample of every active contender, in random order.
  void round();
  std::vector<Contender>& contenders() noexcept { return contenders_; }
  const std::vector<Contender>& contenders() const noexcept { return contenders_; }
  // Why a time is impossible; empty if it is possible. round() also calls it for the median of each contender.
  std::optional<std::string> why_impossible(const Path& path, Seconds seconds) const;

 private:
  void sample(Contender& contender);
  void take(Contender& contender, bool keep);

  Meter& meter_;
  Operation operation_;
  Bytes bytes_;
  std::mt19937_64 random_;
  std::vector<Contender> contenders_;
};

// The summary of a contender as a point of a series.
Point make_point(const Contender& contender, Bytes bytes, bool verified);

}  // namespace waywiser
