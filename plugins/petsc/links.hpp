#pragma once

#include <petscsf.h>

namespace waywiser_petsc {

// A link is what PETSc's basic type packs into and unpacks from, in host memory or in that of a GPU. A type can set
// what moves its bytes, in a structure that only PETSc's sources declare (read of 3.23 to 3.26). Where they are, the
// library carries all links, also those of hosts: a link takes a tag of the communicator, of which all ranks must take
// equally many.
extern const bool carries_links;
// Of a new star forest of the basic type.
void carry_links(PetscSF sf);

}  // namespace waywiser_petsc
