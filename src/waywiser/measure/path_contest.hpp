#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/measure/contest.hpp"
#include "waywiser/measure/meter.hpp"

namespace waywiser {

// The duration of a sample: long compared with the clock's resolution, short compared with the time slices of a busy
// machine, so that most samples are not interrupted and the median is one of those.
Seconds sample_aim(Operation operation);

// Measures several paths at one size.
class PathContest final : public Contest {
 public:
  PathContest(Meter& meter, Operation operation, Bytes bytes, std::uint64_t seed);

  Contender& enter(const Path& path);
  const Path& path(const Contender& contender) const { return paths_[contender.which]; }

 private:
  std::vector<Sample> take(std::size_t which, int repetitions) override;
  Seconds now() const override { return meter_.now(); }
  std::optional<std::string> why_impossible(std::size_t which, Seconds seconds) const override;

  Meter& meter_;
  Operation operation_;
  Bytes bytes_;
  std::vector<Path> paths_;
};

}  // namespace waywiser
