#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "waywiser/measure/path_contest.hpp"
#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// Verifies and times several paths at one size, and puts points and rejections into the store.
class Comparer {
 public:
  // keep_on: asked before each round; false stops at once.
  Comparer(Meter& meter, PointStore& store, std::uint64_t seed, std::function<bool()> keep_on);

  // Skips paths that are already in the store, were rejected, or need too much memory.
  void compare(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort);
  // Repeats a comparison; for each path the lower median is kept, since a disturbance can only add time. Returns
  // whether the times of the contending paths were about the same as before.
  bool compare_again(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort);
  // Successive halving of the paths. Their times go to `searched`, not to the store; failures go to the store.
  void search(const std::vector<Path>& paths, Operation operation, Bytes bytes, PointStore& searched);

  bool missing(const Path& path, Operation operation, Bytes bytes) const;
  // An estimate from the nearest smaller measured size; 0 if nothing is known.
  Seconds least_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) const;
  // The least time of a repetition.
  Seconds again_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) const;
  const std::set<std::string>& notes() const noexcept { return notes_; }

 private:
  PathContest enter_all(const std::vector<Path>& paths, Operation operation, Bytes bytes, bool again = false);
  bool intact(const Path& path, Operation operation, Bytes bytes);
  void settle(const PathContest& contest, Operation operation, Bytes bytes, PointStore& into);
  void note(const Path& path, const Contender& contender, Operation operation, Bytes bytes);

  Meter& meter_;
  PointStore& store_;
  std::uint64_t seed_;
  std::function<bool()> keep_on_;
  std::set<std::pair<std::string, Bytes>> verified_;
  Seconds verify_seconds_per_byte_ = 0;
  std::set<std::string> notes_;
};

}  // namespace waywiser
