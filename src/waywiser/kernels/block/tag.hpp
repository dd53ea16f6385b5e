#pragma once

#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser::block {

// 32 bits of a description, in the upper half of a word.
WAYWISER_DEVICE constexpr std::uint64_t signature_of(std::uint64_t description) {
  std::uint64_t bits = (description ^ description >> 31) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
  return (bits ^ bits >> 32) & 0xffffffff00000000u;
}

// The word beside the data of operation `number`, which only the same operation of another rank matches. With one
// signature, no two numbers have the same tag.
WAYWISER_DEVICE constexpr std::uint64_t tag_of(std::uint64_t number, std::uint64_t signature) {
  return number + signature;
}
// The half of it that fits into a packet, beside the number.
WAYWISER_DEVICE constexpr std::uint32_t mark_of(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag) ^ static_cast<std::uint32_t>(tag >> 32);
}

// What a rank tells the others after waiting for a while.
struct alignas(16) Announcement {
  std::uint64_t tag = 0, description = 0;

  // Whether a rank announces that its operation `number` differs from `mine`. A half-written announcement does not
  // count.
  WAYWISER_DEVICE bool is_unlike(std::uint64_t number, std::uint64_t mine) const {
    return description != mine && tag - signature_of(description) == number;
  }
};

}  // namespace waywiser::block
