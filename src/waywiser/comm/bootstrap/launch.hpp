#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "waywiser/base/crypto.hpp"
#include "waywiser/comm/bootstrap/endpoint.hpp"

namespace waywiser {

// What the launcher of this process says about it.
struct Launch {
  std::string launcher = "none";  // "waywiser run", "Open MPI", "PMI", "srun", "torchrun"; "none": alone
  int rank = 0;
  int size = 1;
  // The same in all ranks of a job, and in no other job of this machine.
  std::string job;
  // Where rank 0 listens. Nothing: all ranks are on one machine and meet in its runtime folder.
  std::optional<Endpoint> root;
  // Of the ranks that meet at `root`; others are known by the kernel.
  Secret secret = {};
  // Ranks that are told different ones take each other for ranks of different machines; empty: as it is.
  std::string machine = {};
};

inline constexpr std::size_t shortest_secret = 16;

// Looks a variable of the environment up; nothing when it is not set.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;

// Reads what mpirun (Open MPI, MPICH), srun, torchrun or `waywiser run` has set. WAYWISER_ROOT (HOST:PORT of rank 0)
// and WAYWISER_SECRET are needed when the ranks are on several machines. Throws invalid_input, naming the variable.
Launch read_launch(const Lookup& lookup);
// Of this process.
Launch read_launch();

}  // namespace waywiser
