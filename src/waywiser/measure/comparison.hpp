#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "waywiser/measure/contest.hpp"
#include "waywiser/measure/point_store.hpp"

namespace waywiser {

// How much work one comparison is worth.
struct Effort {
  int least = 5, most = 31;  // rounds
  double precision = 0.025;  // half width of the confidence interval, in parts of the median
  Seconds share = 0;         // after the least rounds, stop when this much time is used
};

// Verifies and times several paths at one size, and puts points and rejections into the store.
class Comparer {
 public:
  // keep_on: asked before each round; false stops at once.
  Comparer(Meter& meter, PointStore& store, std::uint64_t seed, std::function<bool()> keep_on);

  // Leaves out what the store has already, what was rejected, and what memory does not allow.
  void compare(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort);
  // Measures again what is there; of each path the lower median stays, for what disturbs a sample only ever adds to it.
  // Whether the times of those that contend were about the same as before.
  bool compare_again(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort);
  // Successive halving among the paths. Their times go to `searched`, not to the store; failures to the store.
  void search(const std::vector<Path>& paths, Operation operation, Bytes bytes, PointStore& searched);

  bool missing(const Path& path, Operation operation, Bytes bytes) const;
  // From the nearest smaller measured size; 0 when nothing is known.
  Seconds least_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) const;
  // What comparing again takes at least.
  Seconds again_seconds(const std::vector<Path>& paths, Operation operation, Bytes bytes, const Effort& effort) const;
  const std::set<std::string>& notes() const noexcept { return notes_; }

 private:
  Contest enter_all(const std::vector<Path>& paths, Operation operation, Bytes bytes, bool again = false);
  bool intact(const Path& path, Operation operation, Bytes bytes);
  int run_rounds(Contest& contest, const Effort& effort);
  void settle(Contest& contest, Operation operation, Bytes bytes, PointStore& into);
  void note(const Contender& contender, Operation operation, Bytes bytes);

  Meter& meter_;
  PointStore& store_;
  std::uint64_t seed_;
  std::function<bool()> keep_on_;
  std::set<std::pair<std::string, Bytes>> verified_;
  Seconds verify_seconds_per_byte_ = 0;
  std::set<std::string> notes_;
};

}  // namespace waywiser
