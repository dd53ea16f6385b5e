#include "transfers.hpp"

#include <petsclog.h>
#include <sched.h>

namespace waywiser_petsc {
namespace {

constexpr double spins_for = 0.01;  // seconds of a wait, as in the library; from then on it yields the core
constexpr unsigned turns_between_looks = 16;
// Up to these bytes a message is copied when it is sent, and a receive that finds it there has nothing to begin: such
// receives come after the sends, so that the other rank's message may have come meanwhile.
constexpr std::size_t copied_bytes = 8192;

void make_room(std::unique_ptr<std::byte[]>& memory, std::size_t& bytes, std::size_t wanted) {
  if (bytes >= wanted) return;
  memory = std::make_unique_for_overwrite<std::byte[]>(wanted);
  bytes = wanted;
}

// Of the sides but those that `leaves_out` says.
template <typename Test>
std::size_t bytes_of(const std::vector<Side>& sides, const Unit& unit, Test leaves_out) {
  std::size_t units = 0;
  for (const Side& side : sides)
    if (!leaves_out(side)) units += side.units;
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

PetscErrorCode Transfers::receive(const Side& side, const Unit& unit, int tag, std::byte* into) {
  PetscFunctionBegin;
  ww_future* future = nullptr;
  WaywiserCall(ww_recv(Job::group(), into, side.units * unit.bytes(), WW_UINT8, side.rank, tag, ww_begin(&future)));
  under_way_.push_back(future);
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode Transfers::send(const Side& side, const Unit& unit, int tag, const std::byte* from) {
  PetscFunctionBegin;
  ww_future* future = nullptr;
  WaywiserCall(ww_send(Job::group(), from, side.units * unit.bytes(), WW_UINT8, side.rank, tag, ww_begin(&future)));
  under_way_.push_back(future);
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode Transfers::begin(const std::vector<Side>& gives, const std::vector<Side>& takes, const Unit& unit,
                                int tag, const Arrays& arrays) {
  PetscFunctionBegin;
  arrays_ = arrays;
  const auto of_run = [&](auto* array, const Side& side) { return array + side.runs.front().first * unit.bytes(); };
  const auto in_place = [&](const Side& side) { return arrives_in_place(side); };
  const auto sent_in_place = [&](const Side& side) { return arrays.sends_runs && side.runs.size() == 1; };
  make_room(arrived_, arrived_bytes_, bytes_of(takes, unit, in_place));
  make_room(given_, given_bytes_, bytes_of(gives, unit, sent_in_place));
  under_way_.reserve(gives.size() + takes.size());
  const auto receive_all = [&](bool copied) {
    PetscFunctionBegin;
    std::byte* arrived = arrived_.get();
    for (const Side& side : takes) {
      std::byte* into = in_place(side) ? of_run(static_cast<std::byte*>(arrays.into), side) : arrived;
      if (!in_place(side)) arrived += side.units * unit.bytes();
      if ((side.units * unit.bytes() <= copied_bytes) == copied) PetscCall(receive(side, unit, tag, into));
    }
    PetscFunctionReturn(PetscErrorCode(0));
  };
  PetscCall(receive_all(false));
  std::byte* given = given_.get();
  for (const Side& side : gives) {
    if (sent_in_place(side)) {
      PetscCall(send(side, unit, tag, of_run(static_cast<const std::byte*>(arrays.from), side)));
      continue;
    }
    pack(side, unit, arrays.from, given);
    PetscCall(send(side, unit, tag, given));
    given += side.units * unit.bytes();
  }
  PetscCall(receive_all(true));
  const auto none = [](const Side&) { return false; };
  count(gives.size(), bytes_of(gives, unit, none), takes.size(), bytes_of(takes, unit, none));
  PetscFunctionReturn(PetscErrorCode(0));
}

// Other ranks may wait in MPI for a message of this one before they send here, so MPI gets its turns too.
PetscErrorCode Transfers::wait() {
  PetscFunctionBegin;
  const double begun = MPI_Wtime();
  for (unsigned turn = 1; !under_way_.empty(); ++turn) {
    int done = 0;
    WaywiserCall(ww_future_test(under_way_.back(), &done));
    if (done != 0) {
      ww_future_free(under_way_.back());
      under_way_.pop_back();
      continue;
    }
    if (turn % turns_between_looks != 0) continue;
    int found = 0;
    PetscCallMPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
    const double waited = MPI_Wtime() - begun;
    if (waited > ww_timeout(Job::group())) {
      const std::size_t left = under_way_.size();
      end();
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_LIB, "waywiser: %zu messages of a star forest have not ended in %g s", left,
              ww_timeout(Job::group()));
    }
    if (waited > spins_for) ::sched_yield();
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

PetscErrorCode Transfers::unpack(const std::vector<Side>& takes, const Unit& unit, MPI_Op op) {
  PetscFunctionBegin;
  const std::byte* arrived = arrived_.get();
  for (const Side& side : takes) {
    if (arrives_in_place(side)) continue;
    PetscCall(waywiser_petsc::unpack(side, unit, op, arrived, arrays_.into, scratch_));
    arrived += side.units * unit.bytes();
  }
  PetscFunctionReturn(PetscErrorCode(0));
}

void Transfers::end() noexcept {
  for (ww_future* future : under_way_) ww_future_free(future);
  under_way_.clear();
}

}  // namespace waywiser_petsc
