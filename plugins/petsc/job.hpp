#pragma once

#include <mpi.h>
#include <petscsys.h>
#include <waywiser/c/waywiser.h>

#include <string>
#include <vector>

namespace waywiser_petsc {

// The group of all ranks of MPI_COMM_WORLD: one for a process, from register.cpp to the end of PETSc.
class Job {
 public:
  // nullptr: this process has not joined, or has left.
  static ww_group* group();
  // Collective over MPI_COMM_WORLD. Returns what is wrong, in one line; "": nothing.
  static std::string join();
  // Collective. Ends what is still under way.
  static PetscErrorCode leave();

  // Collective over `comm`: a tag that no other star forest with a rank of `comm` has, until it is given back. Fails if
  // none is left.
  static PetscErrorCode take_tag(MPI_Comm comm, int* tag);
  static void give_back_tag(int tag);
};

// "Waywiser 0.1.0, UCX: /usr/lib/libucp.so.0": the library that is in use, and the libucp that is mapped.
std::string libraries_in_use();

// A transfer that has failed: with the text of the library.
PetscErrorCode library_failed(int error);
#define WaywiserCall(call)                                          \
  do {                                                              \
    if (const int waywiser_error = (call); waywiser_error != WW_OK) \
      PetscCall(::waywiser_petsc::library_failed(waywiser_error));  \
  } while (0)

}  // namespace waywiser_petsc
