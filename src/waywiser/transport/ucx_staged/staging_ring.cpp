#include "waywiser/transport/ucx_staged/staging_ring.hpp"

#include <utility>

namespace waywiser {

StagingRing::StagingRing(HostPool& pool, Place gpu, const StagingShape& shape)
    : pool_(pool), gpu_(gpu), allocation_(shape.allocation), slots_(static_cast<std::size_t>(shape.depth)) {}

StagingRing::~StagingRing() {
  for (Slot& slot : slots_)
    if (slot.memory) pool_.give_back(std::move(slot.memory), allocation_);
}

Region StagingRing::buffer(std::uint64_t chunk, Bytes bytes) {
  Memory& memory = slot(chunk).memory;
  if (memory && memory.region().bytes < bytes) pool_.give_back(std::exchange(memory, {}), allocation_);
  if (!memory) memory = pool_.take(gpu_.index, bytes, allocation_);
  return memory.region().slice(0, bytes);
}

Event& StagingRing::copied(std::uint64_t chunk) {
  std::unique_ptr<Event>& event = slot(chunk).copied;
  if (!event) event = pool_.platform().create_event(gpu_);
  return *event;
}

std::vector<Event*> StagingRing::events() const {
  std::vector<Event*> made;
  for (const Slot& slot : slots_)
    if (slot.copied) made.push_back(slot.copied.get());
  return made;
}

}  // namespace waywiser
