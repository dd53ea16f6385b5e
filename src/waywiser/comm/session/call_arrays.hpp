#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "waywiser/comm/message/call.hpp"
#include "waywiser/device/region.hpp"

// The one place that decides, for all calls, which of their arrays may have memory in common.
namespace waywiser {

// Of two memories of this process, whatever their places are called: no two have the same addresses.
inline bool share_memory(ConstRegion a, ConstRegion b) noexcept {
  const std::less<> before;
  return a.bytes != 0 && b.bytes != 0 && before(a.data, b.data + b.bytes) && before(b.data, a.data + a.bytes);
}

// The array that a call reads and the one that it writes.
struct CallArrays {
  ConstRegion read, written;
  std::optional<Bytes> own_block = {};  // where this rank's block begins in the longer array, if it may be shared
  bool copies = false;                  // the call can read a copy
};

[[noreturn]] void refuse_overlap(CallKind kind, bool copies);
// Whether arrays that share memory lie as calls of this kind permit.
bool may_share(CallKind kind, const CallArrays& arrays) noexcept;

// Throws invalid_input unless the arrays are apart or lie as calls of this kind permit.
inline void check_apart(CallKind kind, const CallArrays& arrays) {
  if (share_memory(arrays.read, arrays.written) && !may_share(kind, arrays)) [[unlikely]]
    refuse_overlap(kind, arrays.copies);
}

// Bytes that one part of a call reads or writes.
struct PartUse {
  ConstRegion bytes;
  std::size_t part = 0;
  bool written = false;
};

// Two uses that share memory which one of them, the first, writes. Sorts `uses`.
std::optional<std::pair<PartUse, PartUse>> find_overlap(std::span<PartUse> uses);
// Throws invalid_input if what is taken from a neighbour shares memory with another array. `peer`: of a part.
void check_exchange(std::span<PartUse> uses, const std::function<int(std::size_t part)>& peer);

}  // namespace waywiser
