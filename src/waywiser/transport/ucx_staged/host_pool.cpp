#include "waywiser/transport/ucx_staged/host_pool.hpp"

#include <algorithm>
#include <bit>

namespace waywiser {
namespace {

constexpr Bytes smallest_taken = 4096;

}  // namespace

Memory HostPool::take(int gpu, Bytes bytes, Allocation allocation) {
  const Bytes size = std::bit_ceil(std::max(bytes, smallest_taken));
  const Place place = platform_.nearest_host(gpu);
  std::vector<Memory>& free = free_[{place, allocation, size}];
  if (free.empty()) return platform_.allocate(place, size, allocation);
  Memory memory = std::move(free.back());
  free.pop_back();
  kept_ -= size;
  return memory;
}

Memory HostPool::give_back(Memory memory, Allocation allocation) {
  const Region region = memory.region();
  if (!memory || kept_ + region.bytes > most_kept_) return memory;
  kept_ += region.bytes;
  free_[{region.place, allocation, region.bytes}].push_back(std::move(memory));
  return {};
}

}  // namespace waywiser
