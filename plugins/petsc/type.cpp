#include "type.hpp"

#include <dlfcn.h>
#include <petsc/private/sfimpl.h>

#include <memory>
#include <utility>

#include "forest.hpp"
#include "links.hpp"

namespace waywiser_petsc {
namespace {

PetscErrorCode begin(PetscSF sf, Direction direction, MPI_Datatype type, PetscMemType root_memory, const void* root,
                     PetscMemType leaf_memory, const void* leaf, void* target, MPI_Op op) {
  PetscFunctionBegin;
  PetscCheck(
      PetscMemTypeHost(root_memory) && PetscMemTypeHost(leaf_memory), PETSC_COMM_SELF, PETSC_ERR_SUP,
      "waywiser: the data of a star forest are on a GPU, which this plugin was not built for; use -sf_type basic, "
      "or build it with the sources of PETSc 3.23 or later");
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  PetscCall(make_ready(sf, *forest));
  Unit unit;
  PetscCall(unit.set(type));
  Operation& operation = free_operation(*forest);
  const bool down = direction == Direction::root_to_leaf;
  const bool apart = are_apart(root, forest->root_units * unit.bytes(), leaf, forest->leaf_units * unit.bytes());
  // Of several leaves that replace one root, the last one stays. So they do not arrive there in any order.
  const bool one_by_one = op == MPI_REPLACE && (down || forest->roots_have_one_leaf);
  PetscCall(operation.transfers.begin(down ? forest->roots : forest->leaves, down ? forest->leaves : forest->roots,
                                      unit, forest->tag, {down ? root : leaf, target, apart, apart && one_by_one}));
  operation.has_begun({direction, root, leaf, unit.bytes()});
  for (const OwnRun& run : forest->own) {
    const auto* from = static_cast<const std::byte*>(down ? root : leaf) + (down ? run.root : run.leaf) * unit.bytes();
    PetscCall(unit.combine(op, from, static_cast<std::byte*>(target) + (down ? run.leaf : run.root) * unit.bytes(),
                           run.count));
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode end(PetscSF sf, Direction direction, MPI_Datatype type, const void* root, const void* leaf, MPI_Op op) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  Unit unit;
  PetscCall(unit.set(type));
  Operation* begun = under_way(*forest, {direction, root, leaf, unit.bytes()});
  PetscCheck(begun != nullptr, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "waywiser: no operation with these arrays and this unit has begun");
  PetscCall(begun->transfers.wait());
  PetscCall(begun->transfers.unpack(direction == Direction::root_to_leaf ? forest->leaves : forest->roots, unit, op));
  begun->under_way = false;
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode bcast_begin(PetscSF sf, MPI_Datatype type, PetscMemType root_memory, const void* root,
                           PetscMemType leaf_memory, void* leaf, MPI_Op op) {
  return without_exceptions(
      [&] { return begin(sf, Direction::root_to_leaf, type, root_memory, root, leaf_memory, leaf, leaf, op); });
}

PetscErrorCode bcast_end(PetscSF sf, MPI_Datatype type, const void* root, void* leaf, MPI_Op op) {
  return without_exceptions([&] { return end(sf, Direction::root_to_leaf, type, root, leaf, op); });
}

PetscErrorCode reduce_begin(PetscSF sf, MPI_Datatype type, PetscMemType leaf_memory, const void* leaf,
                            PetscMemType root_memory, void* root, MPI_Op op) {
  return without_exceptions(
      [&] { return begin(sf, Direction::leaf_to_root, type, root_memory, root, leaf_memory, leaf, root, op); });
}

PetscErrorCode reduce_end(PetscSF sf, MPI_Datatype type, const void* leaf, void* root, MPI_Op op) {
  return without_exceptions([&] { return end(sf, Direction::leaf_to_root, type, root, leaf, op); });
}

PetscErrorCode view(PetscSF sf, PetscViewer viewer) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  PetscCall(forest->basic.View(sf, viewer));
  PetscBool text = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompare(reinterpret_cast<PetscObject>(viewer), PETSCVIEWERASCII, &text));
  if (text) PetscCall(PetscViewerASCIIPrintf(viewer, "  carried by %s\n", libraries_in_use().c_str()));
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode reset(PetscSF sf) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  for (const auto& each : forest->operations)
    PetscCheck(!each->under_way, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
               "waywiser: an operation of the star forest has not been completed");
  forest->reset();
  PetscCall(forest->basic.Reset(sf));
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode destroy(PetscSF sf) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  PetscCall(forest->basic.Destroy(sf));
  PetscCall(let_go(sf));
  PetscFunctionReturn(PetscErrorCode(0));
}

// The operations of the basic type are functions of PETSc's library; elsewhere its structures are others.
bool is_of_petsc(void (*function)()) {
  Dl_info of_function{}, of_petsc{};
  return function != nullptr && ::dladdr(reinterpret_cast<void*>(function), &of_function) != 0 &&
         ::dladdr(reinterpret_cast<void*>(&PetscSFCreate), &of_petsc) != 0 &&
         of_function.dli_fbase == of_petsc.dli_fbase;
}

}  // namespace

PetscErrorCode create(PetscSF sf) {
  PetscFunctionBegin;
  PetscCheck(Job::group() != nullptr, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "waywiser: a star forest of this type is made after the end of PETSc");
  PetscCall(PetscSFSetType(sf, PETSCSFBASIC));
  _PetscSFOps& ops = *sf->ops;
  for (auto* function :
       {reinterpret_cast<void (*)()>(ops.SetUp), reinterpret_cast<void (*)()>(ops.Reset),
        reinterpret_cast<void (*)()>(ops.Destroy), reinterpret_cast<void (*)()>(ops.View),
        reinterpret_cast<void (*)()>(ops.BcastBegin), reinterpret_cast<void (*)()>(ops.ReduceEnd),
        reinterpret_cast<void (*)()>(ops.FetchAndOpEnd), reinterpret_cast<void (*)()>(ops.GetLeafRanks)})
    PetscCheck(is_of_petsc(function), PETSC_COMM_SELF, PETSC_ERR_SUP,
               "waywiser: this PETSc's star forests are not those for which the type was built");
  auto forest = std::make_unique<Forest>();
  forest->basic = ops;
  PetscCall(keep(sf, std::move(forest)));
  if (carries_links) {
    carry_links(sf);
  } else {
    ops.BcastBegin = bcast_begin;
    ops.BcastEnd = bcast_end;
    ops.ReduceBegin = reduce_begin;
    ops.ReduceEnd = reduce_end;
  }
  ops.View = view;
  ops.Reset = reset;
  ops.Destroy = destroy;
  ops.CreateEmbeddedRootSF = nullptr;  // the general way, which takes the type from the options
  PetscCall(PetscObjectChangeTypeName(reinterpret_cast<PetscObject>(sf), "waywiser"));
  PetscFunctionReturn(PetscErrorCode(0));
}

}  // namespace waywiser_petsc
