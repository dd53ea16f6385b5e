#pragma once

#include <map>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Host memory that is kept for the next call, since locking pages takes longer than most copies.
class HostPool {
 public:
  explicit HostPool(Platform& platform) : platform_(platform) {}

  Platform& platform() const noexcept { return platform_; }
  // At least `bytes`, near a GPU.
  Memory take(int gpu, Bytes bytes, Allocation allocation = Allocation::pinned);
  void give_back(Memory memory, Allocation allocation = Allocation::pinned);

 private:
  Platform& platform_;
  std::map<std::tuple<Place, Allocation, Bytes>, std::vector<Memory>> free_;
  Bytes kept_ = 0;
};

}  // namespace waywiser
