#pragma once

#include <petsc/private/sfimpl.h>

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "job.hpp"
#include "transfers.hpp"

namespace waywiser_petsc {

enum class Direction { root_to_leaf, leaf_to_root };

// PETSc names an operation that is under way by these.
struct OperationKey {
  Direction direction;
  const void* root;
  const void* leaf;
  std::size_t unit_bytes;
  friend bool operator==(const OperationKey&, const OperationKey&) = default;
};

// A broadcast or reduction that has begun, or its memory for the next one.
struct Operation {
  bool under_way = false;
  OperationKey key{};
  Transfers transfers;

  void has_begun(const OperationKey& as) { key = as, under_way = true; }
};

// What the type keeps for one star forest.
struct Forest {
  _PetscSFOps basic{};
  bool ready = false;
  int tag = -1;  // -1: none is needed
  std::vector<Side> roots, leaves;
  std::vector<Side> packed_roots, packed_leaves;  // the same units, one side after the other without gaps
  std::vector<OwnRun> own;
  std::size_t root_units = 0, leaf_units = 0;  // of the arrays, up to the last that is used
  bool roots_have_one_leaf = false;            // at most
  std::vector<std::unique_ptr<Operation>> operations;

  ~Forest() { reset(); }
  void reset() {
    operations.clear();
    ready = false;
    for (auto* sides : {&roots, &leaves, &packed_roots, &packed_leaves}) sides->clear();
    own.clear();
    if (tag >= 0) Job::give_back_tag(std::exchange(tag, -1));
  }
};

// What keep() has tied to a star forest.
PetscErrorCode forest_of(PetscSF sf, Forest** forest);
PetscErrorCode keep(PetscSF sf, std::unique_ptr<Forest> forest);
PetscErrorCode let_go(PetscSF sf);
// Once for each graph. Collective.
PetscErrorCode make_ready(PetscSF sf, Forest& forest);

// One that is not under way.
Operation& free_operation(Forest& forest);
// nullptr: none like it is under way.
Operation* under_way(Forest& forest, const OperationKey& wanted);

template <typename Function>
PetscErrorCode without_exceptions(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_MEM, "waywiser: out of host memory");
  }
}

}  // namespace waywiser_petsc
