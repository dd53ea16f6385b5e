#pragma once

#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

// float8_e4m3fn of PyTorch: no infinity; 0x7f and 0xff are NaN, 448 is the largest number.
struct Float8E4m3 {
  std::uint8_t bits = 0;
};
// float8_e5m2 of PyTorch: the upper half of a float16.
struct Float8E5m2 {
  std::uint8_t bits = 0;
};

// All conversions use integer arithmetic, so that hosts and GPUs give the same bits.
namespace float8 {

WAYWISER_DEVICE inline float as_float(std::uint32_t bits) noexcept {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
WAYWISER_DEVICE inline std::uint32_t as_bits(float value) noexcept {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Converts to a format with `mantissa` bits whose exponents are `bias` less than those of a float. Rounds to nearest,
// ties to even; overflow gives `overflow`. Every NaN becomes 0x7f.
template <unsigned mantissa, std::uint32_t bias, std::uint32_t overflow>
WAYWISER_DEVICE inline std::uint8_t narrow(float value) noexcept {
  constexpr unsigned dropped = 23 - mantissa;
  const std::uint32_t bits = as_bits(value), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return 0x7f;
  std::uint32_t result = 0;
  if (magnitude < (bias + 1) << 23) {
    // Subnormal: in the sum, the last bit of the float has the same weight as that of the result.
    constexpr std::uint32_t same_last_bit = (bias + 1 + dropped) << 23;
    result = as_bits(as_float(magnitude) + as_float(same_last_bit)) - same_last_bit;
  } else {
    constexpr std::uint32_t almost_half = (std::uint32_t{1} << (dropped - 1)) - 1;
    result = (magnitude - (bias << 23) + almost_half + (magnitude >> dropped & 1u)) >> dropped;
  }
  return static_cast<std::uint8_t>(sign | (result < overflow ? result : overflow));
}

template <unsigned mantissa, std::uint32_t bias, std::uint32_t first_not_finite>
WAYWISER_DEVICE inline float widen(std::uint8_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fu, sign = std::uint32_t{bits & 0x80u} << 24;
  if (magnitude > first_not_finite || magnitude == 0x7f) return as_float(0x7fc00000u);
  if (magnitude == first_not_finite) return as_float(sign | 0x7f800000u);
  const std::uint32_t scale = (127 + bias)
                              << 23;  // a power of two that corrects the exponent, of subnormal numbers too
  return as_float(sign | as_bits(as_float(magnitude << (23 - mantissa)) * as_float(scale)));
}

}  // namespace float8

WAYWISER_DEVICE inline float to_float(Float8E4m3 value) noexcept { return float8::widen<3, 120, 0x7f>(value.bits); }
WAYWISER_DEVICE inline float to_float(Float8E5m2 value) noexcept { return float8::widen<2, 112, 0x7c>(value.bits); }

// Overflow, infinity included, gives NaN.
WAYWISER_DEVICE inline Float8E4m3 to_float8_e4m3fn(float value) noexcept {
  return {float8::narrow<3, 120, 0x7f>(value)};
}
// Overflow gives infinity.
WAYWISER_DEVICE inline Float8E5m2 to_float8_e5m2(float value) noexcept { return {float8::narrow<2, 112, 0x7c>(value)}; }

}  // namespace waywiser
