#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "waywiser/base/units.hpp"

namespace waywiser {

// Spreads each bit of `value` over all bits: MurmurHash3's last step, of 64 bits.
constexpr std::uint64_t spread(std::uint64_t value) noexcept {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdull;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return value ^ (value >> 33);
}

// Depends on the order.
constexpr std::uint64_t mixed(std::uint64_t seed, std::uint64_t value) noexcept {
  return spread(std::rotl(seed, 23) + value + 0x9e3779b97f4a7c15ull);
}

// Tells bytes apart, on machines of one byte order; does not protect against forgery. Four lanes, which run at the
// speed of memory.
inline std::uint64_t hash_of_bytes(const std::byte* data, Bytes bytes) noexcept {
  std::uint64_t lanes[4] = {1, 2, 3, bytes};
  const auto word = [](const std::byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, 8);
    return value;
  };
  Bytes at = 0;
  for (; at + 32 <= bytes; at += 32)
    for (Bytes lane = 0; lane < 4; ++lane)
      lanes[lane] = (std::rotl(lanes[lane], 29) ^ word(data + at + 8 * lane)) * 0x9e3779b97f4a7c15ull;
  for (int lane = 0; at < bytes; at += 8, lane = (lane + 1) % 4) {
    std::uint64_t last = 0;
    std::memcpy(&last, data + at, bytes - at < 8 ? bytes - at : 8);
    lanes[lane] = (std::rotl(lanes[lane], 29) ^ last) * 0x9e3779b97f4a7c15ull;
  }
  return mixed(mixed(mixed(spread(lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

}  // namespace waywiser
