#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "waywiser/base/secret.hpp"
#include "waywiser/comm/bootstrap/endpoint.hpp"

namespace waywiser {

// What the launcher of this process says about it.
struct Launch {
  std::string launcher = "none";  // "waywiser run", "Open MPI", "PMI", "srun", "torchrun"; "none": alone
  int rank = 0;
  int size = 1;
  // Equal in all ranks of a job, and unique among the jobs of this machine.
  std::string job;
  // Where rank 0 listens. Empty: all ranks are on one machine and meet in its runtime folder.
  std::optional<Endpoint> root;
  // Shared by the ranks that meet at `root`; on one machine the kernel authenticates ranks.
  Secret secret = {};
  // Ranks with different names treat each other as ranks of different machines; empty: WAYWISER_MACHINE, or the real
  // machine.
  std::string machine = {};
};

inline constexpr std::size_t shortest_secret = 16;

// Looks up an environment variable; empty if it is not set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// Reads the variables of mpirun (Open MPI, MPICH), srun, torchrun or `waywiser run`. If the ranks are on several
// machines, WAYWISER_ROOT (HOST:PORT of rank 0) and WAYWISER_SECRET are required. Throws invalid_input, naming the
// variable.
[[gnu::visibility("default")]] Launch read_launch(const Lookup& lookup);
// The launch of this process.
[[gnu::visibility("default")]] Launch read_launch();

}  // namespace waywiser
