#pragma once

#include <petscsf.h>

namespace waywiser_petsc {

// The type "waywiser": PETSc's basic type sets up the graph; its broadcasts and reductions go as messages of the
// library. Those that fetch remain with the basic type, by MPI.
PetscErrorCode create(PetscSF sf);

}  // namespace waywiser_petsc
