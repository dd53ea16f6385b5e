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
  bool apart;  // no unit is in two runs
};

// Units that a rank gives itself.
struct OwnRun {
  std::size_t root, leaf, count;
};

// Where the last of the runs ends.
std::size_t end_of(const std::vector<Run>& runs);
// Whether no two of them have a unit in common.
bool are_apart(std::vector<Run> runs);
bool are_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes);

std::vector<Run> runs_of(const PetscInt* places, PetscInt count);
std::vector<OwnRun> own_runs_of(const PetscInt* roots, const PetscInt* leaves, PetscInt count);

// Copies the units of `array` to `packed`.
void pack(const Side& side, const Unit& unit, const void* array, std::byte* packed);
// array = packed op array. `scratch` is for what it needs.
PetscErrorCode unpack(const Side& side, const Unit& unit, MPI_Op op, const std::byte* packed, void* array,
                      std::vector<std::byte>& scratch);

}  // namespace waywiser_petsc
