#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser::block {

// Memory of one rank that others may store results into, as this GPU reaches it.
struct alignas(16) Exposed {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;

  WAYWISER_DEVICE bool holds(std::uint64_t offset, std::uint64_t length) const {
    return data != nullptr && offset <= bytes && length <= bytes - offset;
  }
};

// Slots of windows count from 1, with equal numbers at all ranks.
inline constexpr unsigned exposed_slots = 15;

// The place of a rank's output, in half a flag: the slot, and an offset in units of 16 bytes. 0: not in a window.
struct OutputPlace {
  static constexpr unsigned offset_bits = 28;

  std::uint32_t slot = 0;
  std::uint64_t offset = 0;

  // The place of an array in this rank's window; none unless others can store whole units into it.
  WAYWISER_DEVICE static OutputPlace in(const Exposed& memory, std::uint32_t slot, const std::byte* array,
                                        std::uint64_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(array);
    const std::uint64_t offset = address - reinterpret_cast<std::uintptr_t>(memory.data);
    if ((address | bytes) % 16 != 0 || !memory.holds(offset, bytes)) return {};
    return {slot, offset};
  }
  WAYWISER_DEVICE std::uint32_t word() const {
    const bool fits = slot <= exposed_slots && offset % 16 == 0 && offset / 16 >> offset_bits == 0;
    return fits && slot != 0 ? slot << offset_bits | static_cast<std::uint32_t>(offset / 16) : 0;
  }
  WAYWISER_DEVICE static OutputPlace of(std::uint32_t word) {
    return {word >> offset_bits, std::uint64_t{word & ((1u << offset_bits) - 1)} * 16};
  }
};

}  // namespace waywiser::block
