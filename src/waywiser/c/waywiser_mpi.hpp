#pragma once

// Ranks of an MPI communicator become ranks of a group, in C++. This header needs mpi.h; the library knows nothing of
// MPI.

#include <array>
#include <exception>

#include "waywiser/c/waywiser_mpi.h"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/unique_id.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

// Group::join for the ranks of `comm`, in its order; all of them call it. `options.launch` is not used. Throws what
// Group::join throws, and at rank 0 what make_unique_id throws: the others then throw invalid_input.
inline Group join_mpi(MPI_Comm comm, JoinOptions options = usual_options()) {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name;
  int rank = 0, size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  ww_mpi_other_machine(comm, name.data());
  UniqueId id{};
  std::exception_ptr failure;
  try {
    if (rank == 0) id = make_unique_id(name.data());
  } catch (...) {
    failure = std::current_exception();
  }
  MPI_Bcast(id.data(), static_cast<int>(id.size()), MPI_BYTE, 0, comm);
  if (failure) std::rethrow_exception(failure);
  options.launch = launch_by(id, rank, size);
  return Group::join(options);
}

}  // namespace waywiser
