#pragma once

#include <map>
#include <optional>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Which parts of a memory are in use: the same calls give the same offsets at all ranks.
class FreeList {
 public:
  explicit FreeList(Bytes bytes) : bytes_(bytes) {}

  // The first place that is large enough, at a multiple of `alignment`; empty: there is none.
  std::optional<Bytes> take(Bytes bytes, Bytes alignment) {
    Bytes end = 0;  // of the part before
    for (auto next = used_.begin();; ++next) {
      const Bytes start = (end + alignment - 1) / alignment * alignment;
      const Bytes limit = next == used_.end() ? bytes_ : next->first;
      if (start >= end && start <= limit && bytes <= limit - start) {
        used_.emplace(start, bytes);
        return start;
      }
      if (next == used_.end()) return {};
      end = next->first + next->second;
    }
  }
  // False: no part in use begins there.
  bool give_back(Bytes offset) { return used_.erase(offset) == 1; }

 private:
  Bytes bytes_;
  std::map<Bytes, Bytes> used_;
};

}  // namespace waywiser
