#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <waywiser/group/group.hpp>

#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// The states of a run in a folder: a file of each rank, and `checkpoint`, which names the newest step of which all
// files are complete. A run can be killed at any moment. `key` describes the run; another run's files are refused.
class Checkpoints {
 public:
  Checkpoints(waywiser::Group& group, std::filesystem::path folder, std::string key)
      : group_(group), folder_(std::move(folder)), key_(std::move(key)) {}

  // Collective. Removes the files of older steps. Throws io at all ranks if one cannot write.
  void write(const FlowValues& values);
  // Collective: the newest state, or nothing if there is none. `like` has the sizes of this run. Throws invalid_input
  // or corrupt at all ranks: a file of another run, of another number of ranks, damaged.
  std::optional<FlowValues> newest(const FlowValues& like);

 private:
  std::filesystem::path file_of(std::int64_t step) const;

  waywiser::Group& group_;
  std::filesystem::path folder_;
  std::string key_;
};

}  // namespace flow
