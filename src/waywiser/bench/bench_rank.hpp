#pragma once

#include <string>
#include <vector>

#include "waywiser/bench/exercise.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"

namespace waywiser {

// One rank of a benchmark: it runs slices, the same ones as all other ranks.
class BenchRank {
 public:
  // The platform of the options is needed.
  explicit BenchRank(const JoinOptions& options);

  int rank() const noexcept { return group_.rank(); }
  int size() const noexcept { return group_.size(); }
  std::string backend() const { return std::string(platform_->backend()); }

  // Seconds of one call, for each sample, as this rank sees it. Every sample is checked after its clock has stopped.
  // Throws corrupt, invalid_input, unavailable, and what the group throws.
  std::vector<Seconds> run(const BenchRequest& request);

  // What rank 0 says.
  std::string share(const std::string& text);
  // Rank 0 gets the values of all ranks, of each as many; the others nothing.
  std::vector<std::vector<double>> collect(const std::vector<double>& values);

 private:
  std::shared_ptr<Platform> platform_;
  Group group_;
  std::unique_ptr<Exercise> exercise_;
  std::string case_;  // which one exercise_ is for
};

}  // namespace waywiser
