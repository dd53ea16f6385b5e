#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/transport/ucx_staged/host_pool.hpp"

namespace waywiser {

// How a message between two machines is staged through host memory on its way from or to a GPU.
struct StagingShape {
  Allocation allocation = Allocation::pinned;
  Bytes chunk = 0;  // 0: each message as a whole
  int depth = 1;    // chunks in flight at the same time

  Bytes chunk_of(Bytes message) const { return chunk == 0 || message < chunk ? message : chunk; }
};

// A ring of buffers in the host memory nearest to a GPU, each with an event for the copy into or out of it. Both are
// created on demand; the memory returns to the pool at the end.
class StagingRing {
 public:
  StagingRing(HostPool& pool, Place gpu, const StagingShape& shape);
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;
  ~StagingRing();

  std::uint64_t depth() const noexcept { return slots_.size(); }
  // The buffer of a chunk, by its number from the first, when the chunk `depth` before it is done.
  Region buffer(std::uint64_t chunk, Bytes bytes);
  Event& copied(std::uint64_t chunk);
  // All that there are.
  std::vector<Event*> events() const;

 private:
  struct Slot {
    Memory memory;
    std::unique_ptr<Event> copied;
  };
  Slot& slot(std::uint64_t chunk) { return slots_[chunk % slots_.size()]; }

  HostPool& pool_;
  const Place gpu_;
  const Allocation allocation_;
  std::vector<Slot> slots_;
};

}  // namespace waywiser
