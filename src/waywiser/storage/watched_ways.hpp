#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "waywiser/policy/plan.hpp"

namespace waywiser {

// The ways that a row of a plan has for a file, best first, while the file is used: the first one, until its calls take
// much longer than the plan expects. Then the next one that should be faster than what is seen, and if none is, the
// one that was seen to be the fastest.
class WatchedWays {
 public:
  // A ratio of 0: its time is not known, so it only serves if it is the first. `expected`: the first one's times.
  explicit WatchedWays(std::vector<RankedWay> ways, std::vector<std::pair<Bytes, Seconds>> expected = {});

  const Way& way() const noexcept { return ways_[now_].way; }
  struct Slow {
    const Way* way = nullptr;  // nullptr: way() stays
    double times = 0;          // the time that the plan has for the first one
  };
  // A call for `count` parts of so many bytes took so long by way(). If that is too slow, it is told, and way() is
  // another one from now on.
  Slow took(Bytes bytes, Seconds seconds, std::size_t count = 1);
  // A call that is still under way after so long is too slow: took() says so then. Nothing: there is no other way.
  std::optional<Seconds> patience(Bytes bytes, std::size_t count = 1) const;
  // How many bytes of a part of `most`, or how many parts, the plan expects to take no longer than half the time until
  // a way is judged: a call that is long goes in such sections.
  Bytes section(Bytes most) const;
  std::size_t section(Bytes each, std::size_t count) const;

 private:
  Seconds expected(Bytes bytes) const;
  Seconds planned(Bytes bytes, std::size_t count) const;
  // The best one that should need less than half of `seen` times the first one's time, but for the present one and
  // those that were seen; the number of ways: none.
  std::size_t better(double seen) const;

  std::vector<RankedWay> ways_;
  std::vector<std::pair<Bytes, Seconds>> expected_;
  std::vector<double> seen_;  // times the first one's expected time; 0: not yet
  std::size_t now_ = 0;
  bool settled_;
  Seconds spent_ = 0, planned_ = 0;  // since the last look
};

}  // namespace waywiser
