#include "waywiser/measure/contest.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_single_times = 100'000;
// A contender may be heavy; its reserve keeps references of enter() valid.
constexpr std::size_t most_contenders = 4096;

}  // namespace

Contender& Contest::enter() {
  if (contenders_.capacity() == 0) contenders_.reserve(most_contenders);
  if (contenders_.size() == most_contenders)
    throw Error(ErrorKind::invalid_input, "more than 4096 contenders in one comparison");
  Contender& contender = contenders_.emplace_back();
  contender.which = contenders_.size() - 1;
  for (int look = 0; look < turn_.looks && contender.active; ++look) {
    take_turn(contender, false);
    const Seconds once = contender.samples.empty() ? 0 : contender.samples.back();
    contender.samples.clear();
    if (!contender.active || once <= 0 || turn_.aim <= 0) break;
    const double wanted = std::clamp(turn_.aim / once, 1.0, static_cast<double>(turn_.most_repetitions));
    const double had = contender.repetitions;
    contender.repetitions = std::max(1, static_cast<int>(std::lround(wanted)));
    if (had >= wanted / 2) break;
  }
  return contender;
}

void Contest::take_turn(Contender& contender, bool keep) {
  looking_ = !keep;
  for (Sample& sample : take(contender.which, contender.repetitions)) {
    if (!sample.failed && (!(sample.seconds > 0) || !std::isfinite(sample.seconds)))
      sample.failed = "a transfer that took no time was reported";
    if (sample.failed) {
      contender.failed = std::move(sample.failed);
      contender.active = false;
      return;
    }
    contender.samples.push_back(sample.seconds);
    if (!keep) continue;
    if (!sample.disturbed.empty()) {
      ++contender.disturbed;
      contender.disturbance = std::move(sample.disturbed);
    }
    contender.cpu.push_back(std::max(0.0, sample.cpu_seconds));
    const auto room = most_single_times - std::min(most_single_times, contender.each.size());
    const auto count = static_cast<std::ptrdiff_t>(std::min(room, sample.each.size()));
    contender.each.insert(contender.each.end(), sample.each.begin(), sample.each.begin() + count);
  }
  if (!keep) return;
  contender.failed = why_impossible(contender.which, contender.typical());
  contender.impossible = contender.failed.has_value();
  contender.active = !contender.impossible;
}

void Contest::round() {
  const bool backwards = order_.size() == contenders_.size();
  std::vector<std::size_t> order = std::exchange(order_, {});
  if (backwards) {
    std::ranges::reverse(order);
  } else {
    order.resize(contenders_.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
    order_ = order;
  }
  for (const std::size_t which : order)
    if (contenders_[which].active) take_turn(contenders_[which], true);
}

Seconds Contest::fastest() const {
  Seconds best = 0;
  for (const Contender& each : contenders_)
    if (!each.failed && !each.samples.empty() && (best == 0 || each.typical() < best)) best = each.typical();
  return best;
}

// Even the best sample must be slow: what disturbs a sample only ever adds to it.
void Contest::drop_hopeless(const Effort& effort) {
  if (effort.hopeless <= 0) return;
  const Seconds best = fastest();
  for (Contender& each : contenders_)
    if (each.active && !(effort.keeps_first && each.which == 0) && each.least() > effort.hopeless * best)
      each.active = false;
}

bool Contest::precise(double precision) const {
  if (precision <= 0) return false;
  const Seconds best = fastest();
  return std::ranges::none_of(contenders_, [&](const Contender& each) {
    return each.active && each.typical() < contending * best && relative_error(summarize(each.samples)) > precision;
  });
}

int Contest::run(const Effort& effort, const std::function<bool()>& keep_on) {
  const Seconds start = now();
  int rounds = 0;
  while (rounds < effort.most && keep_on()) {
    round();
    ++rounds;
    if (rounds >= effort.judged_from) drop_hopeless(effort);
    if (rounds < effort.least) continue;
    if (now() - start >= effort.share || precise(effort.precision)) break;
  }
  return rounds;
}

Point make_point(const Contender& contender, Bytes bytes, bool verified) {
  const Summary summary = summarize(contender.samples);
  Point point;
  point.bytes = bytes;
  point.seconds = summary.median;
  point.low = summary.interval.low;
  point.high = summary.interval.high;
  point.p50 = summary.p50;
  point.p99 = summary.p99;
  point.samples = summary.samples;
  point.cpu_seconds = contender.cpu.empty() ? 0 : median(contender.cpu);
  point.verified = verified;
  point.disturbed = contender.disturbed;
  if (contender.each.size() >= contender.samples.size()) {
    std::vector<double> sorted = contender.each;
    std::sort(sorted.begin(), sorted.end());
    point.p50 = std::max(quantile(sorted, 0.5), 1e-12);
    point.p99 = std::max(quantile(sorted, 0.99), point.p50);
  }
  return point;
}

}  // namespace waywiser
