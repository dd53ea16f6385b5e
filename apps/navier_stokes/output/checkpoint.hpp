#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <waywiser/group/group.hpp>

#include "apps/navier_stokes/mesh/local_mesh.hpp"
#include "apps/navier_stokes/solver/flow_solver.hpp"

namespace flow {

// The states of a run in a folder: a file of each rank, and `checkpoint`, which names the newest step of which all
// files are complete. A run can be killed at any moment. `key` is what defines the flow: mesh, boundaries, fluid; files
// of another one are refused. Values have their places in the whole mesh, so that another number of ranks can go on.
// The state before the newest is kept too, also if it is another run's.
class Checkpoints {
 public:
  Checkpoints(waywiser::Group& group, std::filesystem::path folder, std::string key, const LocalMesh& mesh);

  // Collective. Removes the files of steps before the last but one. Throws io at all ranks if one cannot write.
  void write(const FlowValues& values);
  // Collective: removes the newest state that this run has written, so that the one before is the newest again: if a
  // flow has blown up, it may have been no good at its last checkpoint. Throws io at all ranks.
  void take_back();
  // Collective: the newest state, or nothing if there is none. `like` has the sizes of this run. Throws invalid_input
  // or corrupt at all ranks: a file of another run, damaged.
  std::optional<FlowValues> newest(const FlowValues& like);

 private:
  // A state's name is its step, in the place of another run's state of that step with a `b`.
  std::string named() const;
  std::string named_or_none() const;  // a damaged one is none
  void name(const std::string& state);
  std::filesystem::path file_of(const std::string& state, int rank) const;
  void remove_but(const std::string& one, const std::string& other) const;

  waywiser::Group& group_;
  std::filesystem::path folder_;
  std::string key_;
  std::vector<std::int64_t> cells_, faces_;  // numbers in the whole mesh
  std::string newest_, before_;              // that this run knows of
  bool has_written_ = false;
};

}  // namespace flow
