#pragma once

#include <petscsys.h>

#include <vector>

#include "unit.hpp"

namespace waywiser_petsc {

// Units next to each other in an array.
struct Run {
  std::size_t first, count;
};

// The units of an array that one neighbour gets or fills, in the order of its message.
struct Side {
  int rank;  // of MPI_COMM_WORLD
  std::size_t units;
  std::vector<Run> runs;
};

// Units that a rank gives itself.
struct OwnRun {
  std::size_t root, leaf, count;
};

std::vector<Run> runs_of(const PetscInt* places, PetscInt count);
std::vector<OwnRun> own_runs_of(const PetscInt* roots, const PetscInt* leaves, PetscInt count);

// Copies the units of `array` to `packed`.
void pack(const Side& side, const Unit& unit, const void* array, std::byte* packed);
// array = packed op array
PetscErrorCode unpack(const Side& side, const Unit& unit, MPI_Op op, const std::byte* packed, void* array);

}  // namespace waywiser_petsc
