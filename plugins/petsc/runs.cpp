#include "runs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace waywiser_petsc {
namespace {

// Most runs of a mesh are one number, for which a call takes longer than the copy.
void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == sizeof(double))
    std::memcpy(to, from, sizeof(double));
  else if (bytes != 0)
    std::memcpy(to, from, bytes);
}

void spread(const Side& side, const Unit& unit, const std::byte* packed, std::byte* array) {
  for (const Run& run : side.runs) {
    const std::size_t bytes = run.count * unit.bytes();
    copy(array + run.first * unit.bytes(), packed, bytes);
    packed += bytes;
  }
}

}  // namespace

std::size_t end_of(const std::vector<Run>& runs) {
  std::size_t end = 0;
  for (const Run& run : runs) end = std::max(end, run.first + run.count);
  return end;
}

bool are_apart(std::vector<Run> runs) {
  std::ranges::sort(runs, {}, &Run::first);
  const auto meet = [](const Run& one, const Run& next) { return one.first + one.count > next.first; };
  return std::ranges::adjacent_find(runs, meet) == runs.end();
}

bool are_apart(const void* one, std::size_t one_bytes, const void* other, std::size_t other_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(one), second = reinterpret_cast<std::uintptr_t>(other);
  return first + one_bytes <= second || second + other_bytes <= first;
}

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
    copy(packed, static_cast<const std::byte*>(array) + run.first * unit.bytes(), bytes);
    packed += bytes;
  }
}

// MPI reduces many units in one call much faster than each in its own, so what the array has is packed for it.
PetscErrorCode unpack(const Side& side, const Unit& unit, MPI_Op op, const std::byte* packed, void* array,
                      std::vector<std::byte>& scratch) {
  PetscFunctionBegin;
  auto* into = static_cast<std::byte*>(array);
  if (op != MPI_REPLACE && side.runs.size() > 1 && side.apart) {
    scratch.resize(std::max(scratch.size(), side.units * unit.bytes()));
    pack(side, unit, array, scratch.data());
    PetscCall(unit.combine(op, packed, scratch.data(), side.units));
    spread(side, unit, scratch.data(), into);
  } else if (op == MPI_REPLACE) {
    spread(side, unit, packed, into);
  } else {
    for (const Run& run : side.runs) {
      PetscCall(unit.combine(op, packed, into + run.first * unit.bytes(), run.count));
      packed += run.count * unit.bytes();
    }
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

}  // namespace waywiser_petsc
