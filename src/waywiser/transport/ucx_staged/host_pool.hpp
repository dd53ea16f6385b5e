#pragma once

#include <map>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Host memory that is kept for the next call, since locking pages takes longer than most copies.
class HostPool {
 public:
  explicit HostPool(Platform& platform, Bytes most_kept = Bytes{256} << 20)
      : platform_(platform), most_kept_(most_kept) {}

  Platform& platform() const noexcept { return platform_; }
  // False: memory for so many bytes is made anew each time.
  bool keeps(Bytes bytes) const noexcept { return bytes <= most_kept_; }
  Bytes kept() const noexcept { return kept_; }
  // At least `bytes`, near a GPU.
  Memory take(int gpu, Bytes bytes, Allocation allocation = Allocation::pinned);
  // Returns the memory if the pool has enough. To free it may wait for all streams of the GPU.
  Memory give_back(Memory memory, Allocation allocation = Allocation::pinned);

 private:
  Platform& platform_;
  const Bytes most_kept_;
  std::map<std::tuple<Place, Allocation, Bytes>, std::vector<Memory>> free_;
  Bytes kept_ = 0;
};

}  // namespace waywiser
