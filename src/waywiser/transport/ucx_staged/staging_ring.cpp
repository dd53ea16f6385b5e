#include "waywiser/transport/ucx_staged/staging_ring.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr Bytes smallest = 4096;

}  // namespace

StagingRing::StagingRing(Platform& platform, Place gpu, const StagingShape& shape)
    : platform_(platform), host_(platform.nearest_host(gpu.index)), shape_(shape) {
  for (int i = 0; i < shape.depth; ++i) events_.push_back(platform.create_event(gpu));
}

Region StagingRing::buffer(std::uint64_t chunk, Bytes bytes) {
  if (bytes > slot_bytes_ || buffers_.empty()) {
    slot_bytes_ = shape_.chunk != 0 ? shape_.chunk : std::max({bytes, 2 * slot_bytes_, smallest});
    buffers_.push_back(platform_.allocate(host_, slot_bytes_ * events_.size(), shape_.allocation));
  }
  return buffers_.back().region().slice(chunk % events_.size() * slot_bytes_, bytes);
}

}  // namespace waywiser
