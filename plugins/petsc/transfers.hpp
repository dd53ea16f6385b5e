#pragma once

#include <mpi.h>
#include <petscsys.h>

#include <memory>
#include <vector>

#include "job.hpp"
#include "runs.hpp"

namespace waywiser_petsc {

// From the beginning to the end of one broadcast or reduction: what it sends and receives.
class Transfers {
 public:
  Transfers() = default;
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers() { end(); }

  // Sends what `gives` has of `data`, and receives what `takes` describes.
  PetscErrorCode begin(const std::vector<Side>& gives, const std::vector<Side>& takes, const Unit& unit, int tag,
                       const void* data);
  // Waits; at most ww_timeout(). Then what has arrived may be read until the next begin().
  PetscErrorCode wait();
  // What the first of `takes` has sent; the others follow it.
  const std::byte* arrived() const noexcept { return arrived_.get(); }

 private:
  // Ends what is under way; the group fails then.
  void end() noexcept;

  std::unique_ptr<std::byte[]> given_, arrived_;
  std::size_t given_bytes_ = 0, arrived_bytes_ = 0;  // of memory
  std::vector<ww_future*> under_way_;
};

}  // namespace waywiser_petsc
