#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace waywiser {

struct Ancestor;

// Looks up an environment variable; empty if it is not set.
using Variables = std::function<std::optional<std::string>(std::string_view)>;

// A launcher of parallel programs and the variables that it sets for each process. Of a list, the first that is set
// counts. docs/launchers.md has the same table.
struct Launcher {
  using Names = std::vector<std::string_view>;
  std::string_view name, rank, size;
  // Others that it always sets; without them another one has set `rank`.
  Names needed;
  // On this machine.
  Names local_rank, local_size;
  // How many machines there are.
  Names machines;
  // Together they name the job.
  Names job;
};

std::span<const Launcher> launchers();

// Who started this process, and as what.
struct Started {
  std::string launcher = "none";
  int rank = 0, size = 1;
  // Of this machine; local_size is 0 if the launcher does not tell it.
  int local_rank = 0, local_size = 1;
  // At least so many.
  int machines = 1;
  // Equal in all ranks of a job; if they are on one machine, unique among its jobs. Empty if nothing names it.
  std::string job;
  // Why others are expected, and how to be alone; empty without others.
  std::string claim;
};

// The only place that decides it. If launchers are nested, the innermost counts: that of the nearest ancestor that did
// not have the variables yet. What an allocation, a batch script or an interactive shell of Slurm sets starts nobody.
// Throws invalid_input, naming the variable, if variables contradict each other.
Started who_started(const Variables& variables, const std::function<std::vector<Ancestor>()>& ancestors);
// Of this process.
Started who_started();

}  // namespace waywiser
