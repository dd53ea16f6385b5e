#include "waywiser/measure/contest.hpp"

#include <algorithm>
#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int most_repetitions = 200'000;
constexpr std::size_t most_single_times = 100'000;
constexpr double slack = 1.05;  // a figure this far above the physical limit is refused
// A contender may be heavy; its reserve keeps references of enter() valid.
constexpr std::size_t most_contenders = 4096;

constexpr std::size_t enough_for_a_median = 5;

// One transfer that the system interrupted must not stand for the others.
Seconds typical_time(const Sample& sample, Operation operation) {
  if (operation != Operation::latency || sample.each.size() < enough_for_a_median) return sample.seconds;
  const Seconds middle = median(sample.each);
  return middle > 0 ? middle : sample.seconds;
}

}  // namespace

Seconds sample_aim(Operation operation) { return operation == Operation::latency ? 0.0001 : 0.0003; }

Contest::Contest(Meter& meter, Operation operation, Bytes bytes, std::uint64_t seed)
    : meter_(meter), operation_(operation), bytes_(bytes), random_(seed) {}

Contender& Contest::enter(const Path& path, int first_guess) {
  if (contenders_.capacity() == 0) contenders_.reserve(most_contenders);
  if (contenders_.size() == most_contenders)
    throw Error(ErrorKind::invalid_input, "more than 4096 paths in one comparison");
  Contender& contender = contenders_.emplace_back();
  contender.path = path;
  contender.repetitions = std::clamp(first_guess, 1, most_repetitions);
  for (int attempt = 0; attempt < 4 && contender.active; ++attempt) {
    take(contender, false);
    const Seconds once = contender.samples.empty() ? 0 : contender.samples.back();
    contender.samples.clear();
    if (!contender.active || once <= 0) break;
    const double wanted = std::clamp(sample_aim(operation_) / once, 1.0, static_cast<double>(most_repetitions));
    const double had = contender.repetitions;
    contender.repetitions = std::max(1, static_cast<int>(std::lround(wanted)));
    if (had >= wanted / 2) break;
  }
  return contender;
}

void Contest::take(Contender& contender, bool keep) {
  try {
    Sample sample = meter_.take(contender.path, operation_, bytes_, contender.repetitions);
    if (!(sample.seconds > 0) || !std::isfinite(sample.seconds))
      throw Error(ErrorKind::corrupt, "a transfer that took no time was reported");
    contender.samples.push_back(typical_time(sample, operation_));
    if (!keep) return;
    if (!sample.disturbed.empty()) {
      ++contender.disturbed;
      contender.disturbance = std::move(sample.disturbed);
    }
    contender.cpu.push_back(std::max(0.0, sample.cpu_seconds));
    const auto room = most_single_times - std::min(most_single_times, contender.each.size());
    const auto count = static_cast<std::ptrdiff_t>(std::min(room, sample.each.size()));
    contender.each.insert(contender.each.end(), sample.each.begin(), sample.each.begin() + count);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    contender.failed = error.what();
    contender.active = false;
  }
}

void Contest::sample(Contender& contender) {
  take(contender, true);
  if (!contender.active) return;
  if (auto reason = why_impossible(contender.path, contender.typical())) {
    contender.failed = std::move(reason);
    contender.impossible = true;
    contender.active = false;
  }
}

void Contest::round() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < contenders_.size(); ++i)
    if (contenders_[i].active) order.push_back(i);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
  for (const std::size_t i : order) sample(contenders_[i]);
}

std::optional<std::string> Contest::why_impossible(const Path& path, Seconds seconds) const {
  const Limit limit = meter_.limit(path, operation_);
  const double rate = static_cast<double>(bytes_) / seconds;
  if (limit.rate <= 0 || rate <= slack * limit.rate) return {};
  return format_rate(rate) + " is above the limit of " + format_rate(limit.rate) + " (" + limit.source +
         "): the measurement is wrong";
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
