#include "waywiser/storage/watched_ways.hpp"

#include <algorithm>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {

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

WatchedWays::Slow WatchedWays::took(Bytes bytes, Seconds seconds, std::size_t count) {
  if (settled_) return {};
  spent_ += seconds;
  planned_ += static_cast<double>(count) * expected(bytes);
  if (spent_ * 1000 < static_cast<double>(defaults::file_slow_after) || planned_ <= 0) return {};
  const double seen = std::exchange(spent_, 0) / std::exchange(planned_, 0);
  seen_[now_] = seen;
  const std::size_t before = now_;
  const Slow slow{&ways_[before].way, seen};
  for (std::size_t i = 0; i < ways_.size(); ++i) {  // the best first
    const bool faster = ways_[i].ratio > 0 && ways_[i].ratio * static_cast<double>(defaults::file_slow) <= seen;
    if (seen_[i] != 0 || !faster) continue;
    now_ = i;
    return slow;
  }
  if (now_ == 0) return {};  // no other one should be faster
  settled_ = true;
  for (std::size_t i = 0; i < ways_.size(); ++i)
    if (seen_[i] != 0 && seen_[i] < seen_[now_]) now_ = i;
  return now_ == before ? Slow() : slow;
}

}  // namespace waywiser
