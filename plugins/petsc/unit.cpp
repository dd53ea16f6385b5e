#include "unit.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

namespace waywiser_petsc {

Unit::~Unit() {
  if (owned_) MPI_Type_free(&element_);
}

// MPI reduces its own types only, so arrays of them are taken apart.
PetscErrorCode Unit::set(MPI_Datatype type) {
  PetscFunctionBegin;
  MPI_Aint first = 0, extent = 0;
  PetscCallMPI(MPI_Type_get_extent(type, &first, &extent));
  PetscCheck(first == 0 && extent >= 0, PETSC_COMM_SELF, PETSC_ERR_SUP,
             "waywiser: a unit whose bytes begin at %lld of its address; use -sf_type basic",
             static_cast<long long>(first));
  bytes_ = static_cast<std::size_t>(extent);
  element_ = type;
  while (true) {
    int integers = 0, addresses = 0, types = 0, kind = 0;
    PetscCallMPI(MPI_Type_get_envelope(element_, &integers, &addresses, &types, &kind));
    if (kind != MPI_COMBINER_CONTIGUOUS && kind != MPI_COMBINER_DUP) break;
    int times = 1;
    MPI_Aint no_address = 0;
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    PetscCallMPI(MPI_Type_get_contents(element_, integers, addresses, types, &times, &no_address, &inner));
    if (owned_) PetscCallMPI(MPI_Type_free(&element_));
    element_ = inner;
    count_ *= static_cast<std::size_t>(times);
    PetscCallMPI(MPI_Type_get_envelope(inner, &integers, &addresses, &types, &kind));
    owned_ = kind != MPI_COMBINER_NAMED;
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode Unit::combine(MPI_Op op, const void* from, void* into, std::size_t units) const {
  PetscFunctionBegin;
  if (op == MPI_REPLACE) {
    if (units * bytes_ != 0) std::memmove(into, from, units * bytes_);
    PetscFunctionReturn(PetscErrorCode(0));
  }
  const std::size_t most = std::max<std::size_t>(1, INT_MAX / std::max<std::size_t>(1, count_));
  for (std::size_t done = 0; done < units; done += most) {
    const std::size_t now = std::min(units - done, most);
    PetscCallMPI(MPI_Reduce_local(static_cast<const std::byte*>(from) + done * bytes_,
                                  static_cast<std::byte*>(into) + done * bytes_, static_cast<int>(now * count_),
                                  element_, op));
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

}  // namespace waywiser_petsc
