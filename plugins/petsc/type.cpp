#include "type.hpp"

#include <dlfcn.h>
#include <petsc/private/sfimpl.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "job.hpp"
#include "transfers.hpp"

namespace waywiser_petsc {
namespace {

constexpr char key[] = "waywiser";

enum class Direction { root_to_leaf, leaf_to_root };

// A broadcast or reduction that has begun, or its memory for the next one.
struct Operation {
  bool under_way = false;
  Direction direction{};
  const void* root = nullptr;
  const void* leaf = nullptr;
  std::size_t unit_bytes = 0;
  Transfers transfers;
};

// What the type keeps for one star forest.
struct Forest {
  _PetscSFOps basic{};
  bool ready = false;
  int tag = -1;  // -1: none is needed
  std::vector<Side> roots, leaves;
  std::vector<OwnRun> own;
  std::size_t root_units = 0, leaf_units = 0;  // of the arrays, up to the last that is used
  bool roots_have_one_leaf = false;            // at most
  std::vector<std::unique_ptr<Operation>> operations;

  ~Forest() { reset(); }
  void reset() {
    operations.clear();
    ready = false;
    roots.clear(), leaves.clear(), own.clear();
    if (tag >= 0) Job::give_back_tag(std::exchange(tag, -1));
  }
};

template <typename Function>
PetscErrorCode without_exceptions(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "waywiser: out of host memory");
  }
}

PetscErrorCode forest_of(PetscSF sf, Forest** forest) {
  PetscFunctionBegin;
  PetscContainer holder = nullptr;
  PetscCall(PetscObjectQuery(reinterpret_cast<PetscObject>(sf), key, reinterpret_cast<PetscObject*>(&holder)));
  PetscCheck(holder != nullptr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "waywiser: a star forest has lost its data");
  PetscCall(PetscContainerGetPointer(holder, reinterpret_cast<void**>(forest)));
  PetscFunctionReturn(0);
}

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
  PetscFunctionReturn(0);
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

// Once for each graph. Collective.
PetscErrorCode make_ready(PetscSF sf, Forest& forest) {
  PetscFunctionBegin;
  if (forest.ready) PetscFunctionReturn(0);
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
  if (size > 1) PetscCall(Job::take_tag(comm, &forest.tag));
  forest.ready = true;
  PetscFunctionReturn(0);
}

Operation& free_operation(Forest& forest) {
  for (const auto& each : forest.operations)
    if (!each->under_way) return *each;
  return *forest.operations.emplace_back(std::make_unique<Operation>());
}

PetscErrorCode begin(PetscSF sf, Direction direction, MPI_Datatype type, PetscMemType root_memory, const void* root,
                     PetscMemType leaf_memory, const void* leaf, void* target, MPI_Op op) {
  PetscFunctionBegin;
  PetscCheck(PetscMemTypeHost(root_memory) && PetscMemTypeHost(leaf_memory), PETSC_COMM_SELF, PETSC_ERR_SUP,
             "waywiser: the data of a star forest are on a GPU, which this type does not move; use -sf_type basic");
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
  operation.under_way = true;
  operation.direction = direction;
  operation.root = root;
  operation.leaf = leaf;
  operation.unit_bytes = unit.bytes();
  for (const OwnRun& run : forest->own) {
    const auto* from = static_cast<const std::byte*>(down ? root : leaf) + (down ? run.root : run.leaf) * unit.bytes();
    PetscCall(unit.combine(op, from, static_cast<std::byte*>(target) + (down ? run.leaf : run.root) * unit.bytes(),
                           run.count));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode end(PetscSF sf, Direction direction, MPI_Datatype type, const void* root, const void* leaf, MPI_Op op) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  Unit unit;
  PetscCall(unit.set(type));
  const auto found = std::ranges::find_if(forest->operations, [&](const auto& each) {
    return each->under_way && each->direction == direction && each->root == root && each->leaf == leaf &&
           each->unit_bytes == unit.bytes();
  });
  PetscCheck(found != forest->operations.end(), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE,
             "waywiser: no operation with these arrays and this unit has begun");
  PetscCall((*found)->transfers.wait());
  PetscCall(
      (*found)->transfers.unpack(direction == Direction::root_to_leaf ? forest->leaves : forest->roots, unit, op));
  (*found)->under_way = false;
  PetscFunctionReturn(0);
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
  PetscFunctionReturn(0);
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
  PetscFunctionReturn(0);
}

PetscErrorCode destroy(PetscSF sf) {
  PetscFunctionBegin;
  Forest* forest = nullptr;
  PetscCall(forest_of(sf, &forest));
  PetscCall(forest->basic.Destroy(sf));
  PetscCall(PetscObjectCompose(reinterpret_cast<PetscObject>(sf), key, nullptr));
  PetscFunctionReturn(0);
}

PetscErrorCode delete_forest(void* forest) {
  delete static_cast<Forest*>(forest);
  return 0;
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
  PetscContainer holder = nullptr;
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &holder));
  PetscCall(PetscContainerSetPointer(holder, forest.release()));
  PetscCall(PetscContainerSetUserDestroy(holder, delete_forest));
  PetscCall(PetscObjectCompose(reinterpret_cast<PetscObject>(sf), key, reinterpret_cast<PetscObject>(holder)));
  PetscCall(PetscContainerDestroy(&holder));
  ops.BcastBegin = bcast_begin;
  ops.BcastEnd = bcast_end;
  ops.ReduceBegin = reduce_begin;
  ops.ReduceEnd = reduce_end;
  ops.View = view;
  ops.Reset = reset;
  ops.Destroy = destroy;
  ops.CreateEmbeddedRootSF = nullptr;  // the general way, which takes the type from the options
  PetscCall(PetscObjectChangeTypeName(reinterpret_cast<PetscObject>(sf), "waywiser"));
  PetscFunctionReturn(0);
}

}  // namespace waywiser_petsc
