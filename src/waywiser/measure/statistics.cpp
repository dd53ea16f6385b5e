#include "waywiser/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace waywiser {
namespace {

// The largest rank r (from 0) such that [x(r), x(n-1-r)] covers the median with at least 95 %, that is
// P(Binomial(n, 1/2) <= r) <= 2.5 %; 0 when there is none.
std::size_t confidence_rank(std::size_t count) {
  double probability = std::pow(0.5, static_cast<double>(count));
  double cumulated = 0;
  for (std::size_t rank = 0; rank < count / 2; ++rank) {
    cumulated += probability;
    if (cumulated > 0.025) return rank == 0 ? 0 : rank - 1;
    probability *= static_cast<double>(count - rank) / static_cast<double>(rank + 1);
  }
  return (count - 1) / 2;
}

// Beyond this the powers of 1/2 underflow and the normal approximation is exact enough.
constexpr std::size_t largest_exact = 1000;

std::size_t interval_rank(std::size_t count) {
  if (count <= largest_exact) return confidence_rank(count);
  const double half = static_cast<double>(count) / 2;
  return static_cast<std::size_t>(half - 1.96 * std::sqrt(half / 2) - 1);
}

std::string percent_text(const char* format, double share) {
  char text[96];
  std::snprintf(text, sizeof text, format, share * 100);
  return text;
}

}  // namespace

double quantile(std::span<const double> sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Summary summarize(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t rank = interval_rank(values.size());
  Summary summary;
  summary.median = quantile(values, 0.5);
  summary.interval = {std::min(values[rank], summary.median),
                      std::max(values[values.size() - 1 - rank], summary.median)};
  summary.p50 = summary.median;
  summary.p99 = quantile(values, 0.99);
  summary.samples = static_cast<int>(values.size());
  return summary;
}

bool overlap(Interval a, Interval b) { return a.low <= b.high && b.low <= a.high; }

double relative_error(const Summary& summary) {
  return summary.median > 0 ? (summary.interval.high - summary.interval.low) / 2 / summary.median : INFINITY;
}

Summary paired_ratio(std::span<const double> numerators, std::span<const double> denominators) {
  std::vector<double> ratios(std::min(numerators.size(), denominators.size()));
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = numerators[i] / denominators[i];
  return summarize(std::move(ratios));
}

std::optional<std::string> drift_note(std::span<const double> in_time_order) {
  if (in_time_order.size() < 12) return {};
  const std::size_t half = in_time_order.size() / 2;
  const Summary early = summarize({in_time_order.begin(), in_time_order.begin() + static_cast<std::ptrdiff_t>(half)});
  const Summary late = summarize({in_time_order.begin() + static_cast<std::ptrdiff_t>(half), in_time_order.end()});
  const double change = late.median / early.median - 1;
  if (overlap(early.interval, late.interval) || std::abs(change) < 0.05) return {};
  return percent_text("the second half of the samples took %+.0f %% of the time of the first half", change);
}

std::optional<std::string> bimodality_note(std::span<const double> samples) {
  if (samples.size() < 10) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  // Two modes: a gap that is wide beside both groups, with at least a fifth of the samples on each side.
  const std::size_t least = std::max<std::size_t>(2, sorted.size() / 5);
  std::size_t split = least;
  for (std::size_t i = least; i + least <= sorted.size(); ++i)
    if (sorted[i] - sorted[i - 1] > sorted[split] - sorted[split - 1]) split = i;
  const double gap = sorted[split] - sorted[split - 1];
  const double spread = std::max(sorted[split - 1] - sorted.front(), sorted.back() - sorted[split]);
  const double lower = quantile(std::span(sorted).first(split), 0.5);
  const double upper = quantile(std::span(sorted).subspan(split), 0.5);
  if (gap < spread || upper < 1.1 * lower) return {};
  return percent_text("two modes: the slower one takes %.0f %% more", upper / lower - 1);
}

}  // namespace waywiser
