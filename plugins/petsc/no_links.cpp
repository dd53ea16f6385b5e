#include "links.hpp"

namespace waywiser_petsc {

const bool carries_links = false;

void carry_links(PetscSF) {}

}  // namespace waywiser_petsc
