#include "waywiser/storage/watched_ways.hpp"

#include <algorithm>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr Bytes least_section = Bytes{1} << 20;
constexpr Seconds judged_after = static_cast<double>(defaults::file_slow_after) / 1000;
constexpr double slow_from = static_cast<double>(defaults::file_slow);

}  // namespace

WatchedWays::WatchedWays(std::vector<RankedWay> ways, std::vector<std::pair<Bytes, Seconds>> expected)
    : ways_(std::move(ways)),
      expected_(std::move(expected)),
      seen_(ways_.size(), 0),
      settled_(ways_.size() < 2 || expected_.empty()) {}

// Linear between the measured sizes; below the smallest one its time, above the largest one its rate.
Seconds WatchedWays::expected(Bytes bytes) const {
  const auto right = std::ranges::lower_bound(expected_, bytes, {}, &std::pair<Bytes, Seconds>::first);
  if (right == expected_.begin()) return right->second;
  const auto& [from, least] = *std::prev(right);
  if (right == expected_.end()) return least * static_cast<double>(bytes) / static_cast<double>(from);
  const double share = static_cast<double>(bytes - from) / static_cast<double>(right->first - from);
  return least + share * (right->second - least);
}

// Few parts of one call count as so many that each takes the time of the plan's.
Seconds WatchedWays::planned(Bytes bytes, std::size_t count) const {
  if (count > 1) count = std::max<std::size_t>(count, defaults::file_many);
  return static_cast<double>(count) * expected(bytes);
}

std::size_t WatchedWays::better(double seen) const {
  std::size_t i = 0;  // the best first
  const auto is_better = [&](std::size_t way) {
    return way != now_ && seen_[way] == 0 && ways_[way].ratio > 0 && ways_[way].ratio * slow_from <= seen;
  };
  while (i < ways_.size() && !is_better(i)) ++i;
  return i;
}

std::optional<Seconds> WatchedWays::patience(Bytes bytes, std::size_t count) const {
  if (settled_) return {};
  const Seconds plan = planned_ + planned(bytes, count);
  std::optional<Seconds> found;
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (i == now_ || seen_[i] != 0 || ways_[i].ratio <= 0) continue;
    const Seconds slow = std::max(judged_after, ways_[i].ratio * slow_from * plan);
    found = std::min(found.value_or(slow), slow);
  }
  if (found) *found = std::max(0.0, *found - spent_) + 1e-3;  // more than what took() asks for
  return found;
}

Bytes WatchedWays::section(Bytes most) const {
  if (settled_) return most;
  Bytes section = defaults::file_section;
  while (section < most && expected(2 * section) <= judged_after / 2) section *= 2;
  while (section > least_section && expected(section) > judged_after / 2) section /= 2;
  return std::min(most, section);
}

std::size_t WatchedWays::section(Bytes each, std::size_t count) const {
  if (settled_) return count;
  const auto within = static_cast<std::size_t>(judged_after / 2 / std::max(expected(each), 1e-9));
  return std::min(count, std::max<std::size_t>(within, defaults::file_many));
}

WatchedWays::Slow WatchedWays::took(Bytes bytes, Seconds seconds, std::size_t count) {
  if (settled_) return {};
  spent_ += seconds;
  planned_ += planned(bytes, count);
  if (spent_ < judged_after || planned_ <= 0) return {};
  const double seen = std::exchange(spent_, 0) / std::exchange(planned_, 0);
  seen_[now_] = seen;
  const std::size_t before = now_;
  const Slow slow{&ways_[before].way, seen};
  if (const std::size_t next = better(seen); next < ways_.size()) {
    now_ = next;
    return slow;
  }
  if (now_ == 0) return {};  // no other one should be faster
  settled_ = true;
  for (std::size_t i = 0; i < ways_.size(); ++i)
    if (seen_[i] != 0 && seen_[i] < seen_[now_]) now_ = i;
  return now_ == before ? Slow() : slow;
}

}  // namespace waywiser
