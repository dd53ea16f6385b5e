#include "waywiser/halo/contest.hpp"

#include <algorithm>

#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

constexpr Seconds sample_time = 500e-6;  // a sample is a mean of as many exchanges as fit
constexpr int most_exchanges = 100;

}  // namespace

void HaloContest::run(Seconds until, int least, int most) {
  std::vector<Seconds> once;
  for (Entry& each : all_) once.push_back(time(each));
  slowest(once);
  for (std::size_t i = 0; i < all_.size(); ++i)
    all_[i].exchanges = static_cast<int>(std::clamp(sample_time / std::max(once[i], 1e-9), 1.0, 1.0 * most_exchanges));
  for (int round = 0; round < most && (round < least || took_ < until); ++round) sample(round);
}

Seconds HaloContest::time(Entry& entry) {
  group_.barrier();
  const Seconds first = now_seconds();
  for (int i = 0; i < entry.exchanges; ++i) {
    entry.run->start(nullptr);
    entry.run->finish();
  }
  return (now_seconds() - first) / entry.exchanges;
}

// Each round begins with another run.
void HaloContest::sample(int round) {
  std::vector<Seconds> times(all_.size() + 1);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const std::size_t which = (i + static_cast<std::size_t>(round)) % all_.size();
    times[which] = time(all_[which]);
  }
  times.back() = now_seconds() - begun_;
  slowest(times);
  for (std::size_t i = 0; i < all_.size(); ++i) all_[i].samples.push_back(times[i]);
  took_ = times.back();
}

void HaloContest::slowest(std::vector<Seconds>& times) {
  group_.all_reduce(std::span<const Seconds>(times), std::span(times), ReduceOp::max);
}

}  // namespace waywiser
