#pragma once

#include <type_traits>

#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

// What a reduction makes of two elements.
template <typename T>
WAYWISER_DEVICE constexpr T combined(TeamOp how, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (how == TeamOp::bit_and) return static_cast<T>(a & b);
    if (how == TeamOp::bit_or) return static_cast<T>(a | b);
    if (how == TeamOp::bit_xor) return static_cast<T>(a ^ b);
  }
  switch (how) {
    case TeamOp::sum: return static_cast<T>(a + b);
    case TeamOp::product: return static_cast<T>(a * b);
    case TeamOp::minimum: return b < a ? b : a;
    default: return a < b ? b : a;
  }
}

}  // namespace waywiser::one_sided
