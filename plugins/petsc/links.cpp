#include "links.hpp"

#include <sfpack.h>

#include "forest.hpp"

namespace waywiser_petsc {
namespace {

OperationKey key_of(PetscSFLink link, PetscSFDirection direction) {
  return {direction == PETSCSF_ROOT2LEAF ? Direction::root_to_leaf : Direction::leaf_to_root, link, nullptr,
          link->unitbytes};
}

// The neighbours' parts follow each other in a link's buffers, in the order of the neighbours.
PetscErrorCode start(PetscSF sf, PetscSFLink link, PetscSFDirection direction) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  PetscCall(make_ready(sf, *forest));
  Unit unit;
  PetscCall(unit.set(link->unit));
  const bool down = direction == PETSCSF_ROOT2LEAF;
  char* root = link->rootbuf[PETSCSF_REMOTE][link->rootmtype_mpi];
  char* leaf = link->leafbuf[PETSCSF_REMOTE][link->leafmtype_mpi];
  PetscCall(PetscSFLinkSyncStreamBeforeCallMPI(sf, link));
  Operation& operation = free_operation(*forest);
  PetscCall(operation.transfers.begin(down ? forest->packed_roots : forest->packed_leaves,
                                      down ? forest->packed_leaves : forest->packed_roots, unit, forest->tag,
                                      {down ? root : leaf, down ? leaf : root, true, true}));
  operation.has_begun(key_of(link, direction));
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode finish(PetscSF sf, PetscSFLink link, PetscSFDirection direction) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  Operation* begun = under_way(*forest, key_of(link, direction));
  PetscCheck(begun != nullptr, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "waywiser: a link that has not begun");
  PetscCall(begun->transfers.wait());
  begun->under_way = false;
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode set_operations(PetscSF, PetscSFLink link) {
  PetscFunctionBegin;
  link->InitMPIRequests = nullptr;
  link->StartCommunication = [](PetscSF sf, PetscSFLink of, PetscSFDirection direction) {
    return without_exceptions([&] { return start(sf, of, direction); });
  };
  link->FinishCommunication = finish;
  PetscFunctionReturn(PetscErrorCode(0));
}

}  // namespace

const bool carries_links = true;

// MPI does not see the buffers, so it may not know GPUs.
void carry_links(PetscSF sf) {
  sf->ops->SetCommunicationOps = set_operations;
  sf->use_gpu_aware_mpi = PETSC_TRUE;
}

}  // namespace waywiser_petsc
