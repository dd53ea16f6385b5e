#include "waywiser/halo/tuning.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {
namespace {

std::vector<const HaloTime*> fastest_first(const HaloTuning& tuning) {
  std::vector<const HaloTime*> measured;
  for (const HaloTime& each : tuning.times)
    if (each.why_unavailable.empty()) measured.push_back(&each);
  std::ranges::stable_sort(measured, {}, &HaloTime::median);
  return measured;
}

std::string in_words(const HaloTime& time) {
  return std::string(name(time.variant)) + ": " + format_seconds(time.median) + " (" + format_seconds(time.low) +
         " to " + format_seconds(time.high) + ")";
}

std::string times_as_long(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f times as long", ratio);
  return text;
}

}  // namespace

HaloTuning tuning_of(std::vector<HaloSamples> samples) {
  HaloTuning tuning;
  for (HaloSamples& each : samples) {
    HaloTime time{each.variant, std::move(each.why_unavailable), 0, 0, 0};
    if (time.why_unavailable.empty()) {
      tuning.rounds = static_cast<int>(each.samples.size());
      const Summary summary = summarize(std::move(each.samples));
      time.median = summary.median;
      time.low = summary.interval.low;
      time.high = summary.interval.high;
    }
    tuning.times.push_back(std::move(time));
  }
  const std::vector<const HaloTime*> measured = fastest_first(tuning);
  if (measured.empty()) throw Error(ErrorKind::unavailable, "no variant of the halo exchange could be measured");
  tuning.chosen = measured.front()->variant;
  return tuning;
}

std::string explain(const HaloTuning& tuning) {
  const std::vector<const HaloTime*> measured = fastest_first(tuning);
  std::string text = in_words(*measured.front()) + " an exchange at the slowest rank";
  for (std::size_t i = 1; i < measured.size(); ++i)
    text += (i == 1 ? "\nrunner-up " : "\n") + in_words(*measured[i]) + ", " +
            times_as_long(measured[i]->median / measured.front()->median);
  for (const HaloTime& each : tuning.times)
    if (!each.why_unavailable.empty())
      text += "\n" + std::string(name(each.variant)) + " unavailable: " + each.why_unavailable;
  text += "\nwhy: the least median of " + std::to_string(tuning.rounds) + " interleaved rounds, measured in " +
          format_seconds(tuning.took);
  if (tuning.virtual_gpus) text += "\ntimes of virtual GPUs, which say nothing about GPUs";
  return text;
}

}  // namespace waywiser
