#include "transfers.hpp"

#include <petsclog.h>
#include <sched.h>

namespace waywiser_petsc {
namespace {

void make_room(std::unique_ptr<std::byte[]>& memory, std::size_t& bytes, std::size_t wanted) {
  if (bytes >= wanted) return;
  memory = std::make_unique_for_overwrite<std::byte[]>(wanted);
  bytes = wanted;
}

std::size_t bytes_of(const std::vector<Side>& sides, const Unit& unit) {
  std::size_t units = 0;
  for (const Side& side : sides) units += side.units;
  return units * unit.bytes();
}

// For -log_view.
void count(std::size_t sent, std::size_t sent_bytes, std::size_t received, std::size_t received_bytes) {
#if defined(PETSC_USE_LOG)
  petsc_isend_ct += static_cast<PetscLogDouble>(sent);
  petsc_isend_len += static_cast<PetscLogDouble>(sent_bytes);
  petsc_irecv_ct += static_cast<PetscLogDouble>(received);
  petsc_irecv_len += static_cast<PetscLogDouble>(received_bytes);
#endif
}

}  // namespace

PetscErrorCode Transfers::begin(const std::vector<Side>& gives, const std::vector<Side>& takes, const Unit& unit,
                                int tag, const void* data) {
  PetscFunctionBegin;
  make_room(given_, given_bytes_, bytes_of(gives, unit));
  make_room(arrived_, arrived_bytes_, bytes_of(takes, unit));
  under_way_.reserve(gives.size() + takes.size());
  std::byte* at = arrived_.get();
  for (const Side& side : takes) {
    const std::size_t bytes = side.units * unit.bytes();
    ww_future* future = nullptr;
    WaywiserCall(ww_recv(Job::group(), at, bytes, WW_UINT8, side.rank, tag, ww_begin(&future)));
    under_way_.push_back(future);
    at += bytes;
  }
  at = given_.get();
  for (const Side& side : gives) {
    const std::size_t bytes = side.units * unit.bytes();
    pack(side, unit, data, at);
    ww_future* future = nullptr;
    WaywiserCall(ww_send(Job::group(), at, bytes, WW_UINT8, side.rank, tag, ww_begin(&future)));
    under_way_.push_back(future);
    at += bytes;
  }
  count(gives.size(), bytes_of(gives, unit), takes.size(), bytes_of(takes, unit));
  PetscFunctionReturn(0);
}

// Other ranks may wait in MPI for a message of this one before they send here, so MPI gets its turns too.
PetscErrorCode Transfers::wait() {
  PetscFunctionBegin;
  const double end_of_time = MPI_Wtime() + ww_timeout(Job::group());
  while (!under_way_.empty()) {
    int done = 0;
    WaywiserCall(ww_future_test(under_way_.back(), &done));
    if (done != 0) {
      ww_future_free(under_way_.back());
      under_way_.pop_back();
      continue;
    }
    int found = 0;
    PetscCallMPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
    if (MPI_Wtime() > end_of_time) {
      const std::size_t left = under_way_.size();
      end();
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "waywiser: %zu messages of a star forest have not ended in %g s", left,
              ww_timeout(Job::group()));
    }
    ::sched_yield();
  }
  PetscFunctionReturn(0);
}

void Transfers::end() noexcept {
  for (ww_future* future : under_way_) ww_future_free(future);
  under_way_.clear();
}

}  // namespace waywiser_petsc
