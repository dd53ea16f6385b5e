#pragma once

#include "waywiser/kernels/block/tag.hpp"
#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::block {

using Word8 = Vector<std::uint32_t, 2>;

// A packet of the LL protocol: eight bytes of data, each half beside a part of the tag, so that the data carry their
// own flag. Either half may become visible first.
struct alignas(16) LlPacket {
  std::uint32_t low, number, high, mark;

  WAYWISER_DEVICE bool is_of(std::uint64_t tag) const {
    return number == static_cast<std::uint32_t>(tag) && mark == mark_of(tag);
  }
};

}  // namespace waywiser::block
