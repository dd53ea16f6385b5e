#include "forest.hpp"

#include <algorithm>

namespace waywiser_petsc {
namespace {

constexpr char key[] = "waywiser";

// The neighbours of a list of PETSc's, without this rank itself, with their ranks in MPI_COMM_WORLD.
PetscErrorCode find_sides(MPI_Comm comm, PetscInt count, const PetscMPIInt* ranks, const PetscInt* offsets,
                          const PetscInt* places, std::vector<Side>& sides) {
  PetscFunctionBegin;
  int self = 0;
  MPI_Group here = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PetscCallMPI(MPI_Comm_rank(comm, &self));
  PetscCallMPI(MPI_Comm_group(comm, &here));
  PetscCallMPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  for (PetscInt i = 0; i < count; ++i) {
    const PetscInt units = offsets[i + 1] - offsets[i];
    if (ranks[i] == self || units == 0) continue;
    Side side{0, static_cast<std::size_t>(units), runs_of(places + offsets[i], units), false};
    side.apart = are_apart(side.runs);
    PetscCallMPI(MPI_Group_translate_ranks(here, 1, &ranks[i], world, &side.rank));
    PetscCheck(side.rank != MPI_UNDEFINED, PETSC_COMM_SELF, PETSC_ERR_SUP,
               "waywiser: a star forest has a rank that is not in MPI_COMM_WORLD; use -sf_type basic");
    sides.push_back(std::move(side));
  }
  PetscCallMPI(MPI_Group_free(&here));
  PetscCallMPI(MPI_Group_free(&world));
  PetscFunctionReturn(PetscErrorCode(0));
}

void find_extents(Forest& forest) {
  std::vector<Run> roots, leaves;
  for (const Side& side : forest.roots) roots.insert(roots.end(), side.runs.begin(), side.runs.end());
  for (const Side& side : forest.leaves) leaves.insert(leaves.end(), side.runs.begin(), side.runs.end());
  for (const OwnRun& run : forest.own) {
    roots.push_back({run.root, run.count});
    leaves.push_back({run.leaf, run.count});
  }
  forest.root_units = end_of(roots);
  forest.leaf_units = end_of(leaves);
  forest.roots_have_one_leaf = are_apart(std::move(roots));
}

std::vector<Side> packed(std::vector<Side> sides) {
  std::size_t at = 0;
  for (Side& side : sides) {
    side.runs = {{at, side.units}};
    side.apart = true;
    at += side.units;
  }
  return sides;
}

PetscErrorCode delete_forest(void* forest) {
  delete static_cast<Forest*>(forest);
  return PetscErrorCode(0);
}

// PETSc's type of `place` has changed: the address of the pointer.
template <typename Place>
PetscErrorCode delete_forest_at(Place place) {
  return delete_forest(*static_cast<void**>(place));
}

}  // namespace

PetscErrorCode forest_of(PetscSF sf, Forest** forest) {
  PetscFunctionBegin;
  PetscContainer holder = nullptr;
  PetscCall(PetscObjectQuery(reinterpret_cast<PetscObject>(sf), key, reinterpret_cast<PetscObject*>(&holder)));
  PetscCheck(holder != nullptr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "waywiser: a star forest has lost its data");
  PetscCall(PetscContainerGetPointer(holder, reinterpret_cast<void**>(forest)));
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode keep(PetscSF sf, std::unique_ptr<Forest> forest) {
  PetscFunctionBegin;
  PetscContainer holder = nullptr;
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &holder));
  PetscCall(PetscContainerSetPointer(holder, forest.release()));
#if PETSC_VERSION_GE(3, 23, 0)
  PetscCall(PetscContainerSetCtxDestroy(holder, delete_forest_at));
#else
  PetscCall(PetscContainerSetUserDestroy(holder, delete_forest));
#endif
  PetscCall(PetscObjectCompose(reinterpret_cast<PetscObject>(sf), key, reinterpret_cast<PetscObject>(holder)));
  PetscCall(PetscContainerDestroy(&holder));
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode let_go(PetscSF sf) { return PetscObjectCompose(reinterpret_cast<PetscObject>(sf), key, nullptr); }

PetscErrorCode make_ready(PetscSF sf, Forest& forest) {
  PetscFunctionBegin;
  if (forest.ready) PetscFunctionReturn(PetscErrorCode(0));
  const MPI_Comm comm = PetscObjectComm(reinterpret_cast<PetscObject>(sf));
  int self = 0, size = 0;
  PetscCallMPI(MPI_Comm_rank(comm, &self));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscInt count = 0;
  const PetscMPIInt* ranks = nullptr;
  const PetscInt *offsets = nullptr, *roots = nullptr, *leaves = nullptr;
  PetscCall(PetscSFGetLeafRanks(sf, &count, &ranks, &offsets, &roots));
  PetscCall(find_sides(comm, count, ranks, offsets, roots, forest.roots));
  PetscCall(PetscSFGetRootRanks(sf, &count, &ranks, &offsets, &leaves, &roots));
  PetscCall(find_sides(comm, count, ranks, offsets, leaves, forest.leaves));
  for (PetscInt i = 0; i < count; ++i)
    if (ranks[i] == self)
      forest.own = own_runs_of(roots + offsets[i], leaves + offsets[i], offsets[i + 1] - offsets[i]);
  find_extents(forest);
  forest.packed_roots = packed(forest.roots);
  forest.packed_leaves = packed(forest.leaves);
  if (size > 1) PetscCall(Job::take_tag(comm, &forest.tag));
  forest.ready = true;
  PetscFunctionReturn(PetscErrorCode(0));
}

Operation& free_operation(Forest& forest) {
  for (const auto& each : forest.operations)
    if (!each->under_way) return *each;
  return *forest.operations.emplace_back(std::make_unique<Operation>());
}

Operation* under_way(Forest& forest, const OperationKey& wanted) {
  for (const auto& each : forest.operations)
    if (each->under_way && each->key == wanted) return each.get();
  return nullptr;
}

}  // namespace waywiser_petsc
