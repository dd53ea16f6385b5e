#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// How a message between two machines passes through host memory on its way from or to a GPU.
struct StagingShape {
  Allocation allocation = Allocation::pinned;
  Bytes chunk = 0;  // 0: each message at once
  int depth = 1;    // chunks that are under way at the same time

  Bytes chunk_of(Bytes message) const { return chunk == 0 || message < chunk ? message : chunk; }
};

// A ring of buffers in the host memory next to a GPU, each with an event for the copy into or out of it.
class StagingRing {
 public:
  StagingRing(Platform& platform, Place gpu, const StagingShape& shape);

  std::uint64_t depth() const noexcept { return events_.size(); }
  // Of the chunk with that number, counted from the first. Grows where it must; what is under way stays where it is.
  Region buffer(std::uint64_t chunk, Bytes bytes);
  Event& copied(std::uint64_t chunk) { return *events_[chunk % events_.size()]; }

 private:
  Platform& platform_;
  const Place host_;
  const StagingShape shape_;
  std::vector<std::unique_ptr<Event>> events_;
  std::vector<Memory> buffers_;  // the last one is in use
  Bytes slot_bytes_ = 0;
};

}  // namespace waywiser
