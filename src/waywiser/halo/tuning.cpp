#include "waywiser/halo/tuning.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/halo/samples.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {
namespace {

std::vector<const HaloTime*> fastest_first(const std::vector<HaloTime>& times) {
  std::vector<const HaloTime*> measured;
  for (const HaloTime& each : times)
    if (each.why_unavailable.empty()) measured.push_back(&each);
  std::ranges::stable_sort(measured, {}, &HaloTime::median);
  return measured;
}

std::string in_words(const HaloTime& time) {
  const std::string text = std::string(name(time.variant)) + ": " + format_seconds(time.median);
  return time.low == time.high ? text
                               : text + " (" + format_seconds(time.low) + " to " + format_seconds(time.high) + ")";
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
  const std::vector<const HaloTime*> measured = fastest_first(tuning.times);
  if (measured.empty()) throw Error(ErrorKind::unavailable, "no variant of the halo exchange could be measured");
  tuning.chosen = measured.front()->variant;
  return tuning;
}

void add_last(HaloTuning& tuning, const HaloTuning& last) {
  for (const HaloTime& each : last.times) {
    const auto known = std::ranges::find(tuning.times, each.variant, &HaloTime::variant);
    if (known == tuning.times.end())
      tuning.times.push_back(each);
    else
      *known = each;
  }
  tuning.chosen = last.chosen;
  tuning.last_rounds = last.rounds;
}

std::string runner_up(const HaloKindTimes& kind) {
  const std::vector<const HaloTime*> measured = fastest_first(kind.times);
  if (measured.size() < 2) return {};
  return "; runner-up " + std::string(name(measured[1]->variant)) + ", " +
         times_as_long(measured[1]->median / measured[0]->median);
}

std::string explain(const HaloTuning& tuning) {
  std::vector<const HaloTime*> measured = fastest_first(tuning.times);
  std::ranges::stable_partition(measured, [&](const HaloTime* each) { return each->variant == tuning.chosen; });
  std::string text = in_words(*measured.front()) + " an exchange at the slowest rank";
  for (std::size_t i = 1; i < measured.size(); ++i)
    text += (i == 1 ? "\nrunner-up " : "\n") + in_words(*measured[i]) + ", " +
            times_as_long(measured[i]->median / measured.front()->median);
  for (const HaloTime& each : tuning.times)
    if (!each.why_unavailable.empty())
      text += "\n" + std::string(name(each.variant)) + " unavailable: " + each.why_unavailable;
  for (const HaloKindTimes& each : tuning.kinds)
    text += "\n" + each.words + ": " + std::string(name(each.chosen)) + runner_up(each);
  if (!tuning.source.empty()) return text + "\nwhy: an earlier run's answer in " + tuning.source;
  text += "\nwhy: the least median of " + std::to_string(tuning.rounds) + " interleaved rounds";
  if (tuning.last_rounds != 0)
    text += ", and of " + std::to_string(tuning.last_rounds) + " between the mix and the best";
  text += ", measured in " + format_seconds(tuning.took);
  if (tuning.virtual_gpus) text += "\ntimes of virtual GPUs, which say nothing about GPUs";
  return text;
}

}  // namespace waywiser
