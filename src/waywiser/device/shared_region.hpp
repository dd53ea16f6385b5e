#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Names an allocation on a GPU to other processes of this machine by bytes alone, which any message can carry; and a
// part of it.
struct SharedRegion {
  std::uint64_t process = 0;  // of its owner
  std::uint64_t address = 0;  // of the allocation, there
  Bytes allocation_bytes = 0;
  Bytes offset = 0, bytes = 0;  // of the part
  std::array<char, 32> gpu{};   // Platform::identity(), with a zero at the end
  std::array<std::byte, 64> opaque{};

  std::string_view identity() const { return {gpu.data()}; }
};

}  // namespace waywiser
