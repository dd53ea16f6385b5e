#include "runs.hpp"

#include <cstring>

namespace waywiser_petsc {

std::vector<Run> runs_of(const PetscInt* places, PetscInt count) {
  std::vector<Run> runs;
  for (PetscInt i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(places[i]);
    if (!runs.empty() && runs.back().first + runs.back().count == place)
      ++runs.back().count;
    else
      runs.push_back({place, 1});
  }
  return runs;
}

std::vector<OwnRun> own_runs_of(const PetscInt* roots, const PetscInt* leaves, PetscInt count) {
  std::vector<OwnRun> runs;
  for (PetscInt i = 0; i < count; ++i) {
    const auto root = static_cast<std::size_t>(roots[i]), leaf = static_cast<std::size_t>(leaves[i]);
    if (!runs.empty() && runs.back().root + runs.back().count == root && runs.back().leaf + runs.back().count == leaf)
      ++runs.back().count;
    else
      runs.push_back({root, leaf, 1});
  }
  return runs;
}

void pack(const Side& side, const Unit& unit, const void* array, std::byte* packed) {
  for (const Run& run : side.runs) {
    const std::size_t bytes = run.count * unit.bytes();
    if (bytes != 0) std::memcpy(packed, static_cast<const std::byte*>(array) + run.first * unit.bytes(), bytes);
    packed += bytes;
  }
}

PetscErrorCode unpack(const Side& side, const Unit& unit, MPI_Op op, const std::byte* packed, void* array) {
  PetscFunctionBegin;
  for (const Run& run : side.runs) {
    PetscCall(unit.combine(op, packed, static_cast<std::byte*>(array) + run.first * unit.bytes(), run.count));
    packed += run.count * unit.bytes();
  }
  PetscFunctionReturn(0);
}

}  // namespace waywiser_petsc
