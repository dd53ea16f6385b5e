#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "waywiser/base/units.hpp"

namespace waywiser {

// A handle to a part of a GPU allocation that another process of this machine can open. Send it in any message.
struct SharedRegion {
  std::uint64_t process = 0;  // the owner's
  std::uint64_t address = 0;  // of the allocation, in the owner's process
  Bytes allocation_bytes = 0;
  Bytes offset = 0, bytes = 0;  // of the part
  std::array<char, 32> gpu{};   // Platform::identity(), with a zero at the end
  std::array<std::byte, 64> opaque{};

  std::string_view identity() const { return {gpu.data()}; }
};

}  // namespace waywiser
