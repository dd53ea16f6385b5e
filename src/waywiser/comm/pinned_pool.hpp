#pragma once

#include <map>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Page-locked host memory that is kept for the next call: to lock pages takes longer than most copies.
class PinnedPool {
 public:
  explicit PinnedPool(Platform& platform) : platform_(platform) {}

  // At least `bytes`, near a GPU.
  Memory take(int gpu, Bytes bytes);
  void give_back(Memory memory);

 private:
  Platform& platform_;
  std::map<std::pair<Place, Bytes>, std::vector<Memory>> free_;
  Bytes kept_ = 0;
};

}  // namespace waywiser
