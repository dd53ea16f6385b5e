#pragma once

#include <mpi.h>
#include <petscsys.h>

#include <memory>
#include <vector>

#include "job.hpp"
#include "runs.hpp"

namespace waywiser_petsc {

// The program's arrays of one broadcast or reduction.
struct Arrays {
  const void* from;
  void* into;
  bool sends_runs;  // a side that is one run is sent out of `from` itself, else out of a copy
  bool takes_runs;  // a side that is one run arrives in `into` itself, else beside it
};

// From the beginning to the end of one broadcast or reduction: what it sends and receives.
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers() { end(); }

  // Sends what `gives` describes, and receives what `takes` describes.
  PetscErrorCode begin(const std::vector<Side>& gives, const std::vector<Side>& takes, const Unit& unit, int tag,
                       const Arrays& arrays);
  // Waits; at most ww_timeout().
  PetscErrorCode wait();
  // After wait(): into = what has arrived op into. `takes`: as begin() got it.
  PetscErrorCode unpack(const std::vector<Side>& takes, const Unit& unit, MPI_Op op);

 private:
  bool arrives_in_place(const Side& side) const { return arrays_.takes_runs && side.runs.size() == 1; }
  PetscErrorCode receive(const Side& side, const Unit& unit, int tag, std::byte* into);
  PetscErrorCode send(const Side& side, const Unit& unit, int tag, const std::byte* from);
  // Ends what is under way; the group fails then.
  void end() noexcept;

  Arrays arrays_{};
  std::unique_ptr<std::byte[]> given_, arrived_;
  std::size_t given_bytes_ = 0, arrived_bytes_ = 0;  // of memory
  std::vector<std::byte> scratch_;
  std::vector<ww_future*> under_way_;
};

}  // namespace waywiser_petsc
