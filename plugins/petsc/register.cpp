// What PETSc calls when it loads the plugin: -dll_append libwaywiser_petsc.so
#include <petsc/private/sfimpl.h>

#include <cstdio>

#include "job.hpp"
#include "type.hpp"

namespace waywiser_petsc {
namespace {

// A PETSc of another version or build has other structures. Returns what differs, in one line; "": nothing.
std::string other_petsc() {
  PetscInt major = 0, minor = 0, patch = 0;
  if (PetscGetVersionNumber(&major, &minor, &patch, nullptr) != 0) return "PETSc does not tell its version";
  const auto version = [](auto first, auto second) { return std::to_string(first) + "." + std::to_string(second); };
  if (major != PETSC_VERSION_MAJOR || minor != PETSC_VERSION_MINOR)
    return "built for PETSc " + version(PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR) + ", this is " +
           version(major, minor);
  PetscDataType scalar = PETSC_DATATYPE_UNKNOWN;
  PetscBool found = PETSC_FALSE;
  std::size_t integer_bytes = 0;
  if (PetscDataTypeFromString("scalar", &scalar, &found) != 0 || !found ||
      PetscDataTypeGetSize(PETSC_INT, &integer_bytes) != 0)
    return "PETSc does not tell its types";
  if (scalar != PETSC_SCALAR) return "built for a PETSc with another type of scalars (real, complex; precision)";
  if (integer_bytes != sizeof(PetscInt)) return "built for a PETSc with another size of integers";
  return {};
}

std::string why_not() {
  if (std::string other = other_petsc(); !other.empty()) return other;
  int alike = MPI_UNEQUAL;
  MPI_Comm_compare(PETSC_COMM_WORLD, MPI_COMM_WORLD, &alike);
  if (alike == MPI_UNEQUAL) return "PETSC_COMM_WORLD has not all ranks of MPI_COMM_WORLD, which join together";
  return Job::join();
}

}  // namespace
}  // namespace waywiser_petsc

// Before the checks nothing of PETSc's that may differ between versions is used, so neither are its error messages.
extern "C" __attribute__((visibility("default"))) PetscErrorCode PetscDLLibraryRegister_waywiser_petsc() {
  using namespace waywiser_petsc;
  if (const std::string why = why_not(); !why.empty()) {
    std::fprintf(stderr, "waywiser: the PetscSF type cannot be used: %s\n", why.c_str());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  PetscFunctionBegin;
  PetscCall(PetscSFRegister("waywiser", create));
  PetscCall(PetscRegisterFinalize(Job::leave));
  PetscCall(PetscInfo(nullptr, "PetscSF type waywiser: %s\n", libraries_in_use().c_str()));
  PetscFunctionReturn(PetscErrorCode(0));
}
