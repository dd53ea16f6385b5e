#pragma once

#include <mpi.h>
#include <petscsys.h>

#include <cstddef>

namespace waywiser_petsc {

// What a star forest moves for each leaf, as PETSc's own types see it: `count` elements of one type next to each other,
// with the bytes of its extent.
class Unit {
 public:
  Unit() = default;
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;
  ~Unit();

  // Fails if the type does not begin at its address.
  PetscErrorCode set(MPI_Datatype type);
  std::size_t bytes() const noexcept { return bytes_; }
  // into = from op into, for so many units; MPI_REPLACE copies, also between arrays that overlap.
  PetscErrorCode combine(MPI_Op op, const void* from, void* into, std::size_t units) const;

 private:
  std::size_t bytes_ = 0, count_ = 1;
  MPI_Datatype element_ = MPI_DATATYPE_NULL;
  bool owned_ = false;
};

}  // namespace waywiser_petsc
