#pragma once

#include <petscsf.h>

namespace waywiser_petsc {

// A link is what PETSc's basic type packs into and unpacks from, in host memory or in that of a GPU. What moves its
// bytes can be set since PETSc 3.23, in a structure that only PETSc's sources declare. Without them no links are
// carried.
extern const bool carries_links;
// Of a new star forest: the library carries its links.
void carry_links(PetscSF sf);

}  // namespace waywiser_petsc
