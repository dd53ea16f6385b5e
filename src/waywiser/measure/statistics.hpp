#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

struct Interval {
  double low = 0, high = 0;
};

struct Summary {
  double median = 0;
  Interval interval;  // 95 % confidence interval of the median, by order statistics; below 6 samples: least to largest
  double p50 = 0, p99 = 0;
  int samples = 0;
};

// Linear between neighbouring order statistics; `sorted` is not empty, share in [0, 1].
double quantile(std::span<const double> sorted, double share);
double median(std::vector<double> values);
// Needs no assumption about the distribution. `values` is not empty.
Summary summarize(std::vector<double> values);

bool overlap(Interval a, Interval b);
// Half width of the interval in parts of the median: 0.02 is +-2 %.
double relative_error(const Summary& summary);

// Summarizes the ratios of pairs. The two of a pair were measured one right after the other, so drift cancels.
Summary paired_ratio(std::span<const double> numerators, std::span<const double> denominators);

// Notes for people, of samples in the order of time; nothing when there is nothing to say.
std::optional<std::string> drift_note(std::span<const double> in_time_order);
std::optional<std::string> bimodality_note(std::span<const double> samples);

}  // namespace waywiser
