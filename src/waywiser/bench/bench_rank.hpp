#pragma once

#include <string>
#include <vector>

#include "waywiser/bench/exercise.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"

namespace waywiser {

// One rank of a benchmark: it runs the same slices as all other ranks.
class BenchRank {
 public:
  // Requires a platform in the options.
  explicit BenchRank(const JoinOptions& options);

  int rank() const noexcept { return group_.rank(); }
  int size() const noexcept { return group_.size(); }
  std::string backend() const { return std::string(platform_->backend()); }

  // The seconds of one call, for each sample, as this rank sees it. Every sample is checked after its clock has
  // stopped. Throws corrupt, invalid_input, unavailable, and the errors of the group.
  std::vector<Seconds> run(const BenchRequest& request);

  // Returns rank 0's text at all ranks.
  std::string share(const std::string& text);
  // Rank 0 gets the values of all ranks, equally many from each; the others get nothing.
  std::vector<std::vector<double>> collect(const std::vector<double>& values);

 private:
  std::shared_ptr<Platform> platform_;
  Group group_;
  std::unique_ptr<Exercise> exercise_;
  std::string case_;  // which one exercise_ is for
};

}  // namespace waywiser
