#pragma once

#include <cstdint>

#include "waywiser/device/stream.hpp"

namespace waywiser {

enum class ElementType : std::uint8_t { float64, float32, int64, int32 };

// Element by element: a + b + ... + b, with `times` additions in this order; a * b; or a * factor. Integers wrap
// around.
struct Elementwise {
  enum class Kind : std::uint8_t { add, multiply, scale };

  Kind kind = Kind::add;
  ElementType type = ElementType::float64;
  std::uint64_t times = 1;  // of add
  double factor = 1;        // of scale, which is for floating-point numbers only
};

// On a GPU's stream. All three arrays have `count` elements; `b` is not used by scale. `result` may be one of the
// others.
void apply_elementwise(Stream& stream, const Elementwise& operation, std::uint64_t count, Region result, ConstRegion a,
                       ConstRegion b);

}  // namespace waywiser
