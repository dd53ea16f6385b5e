#pragma once

#include <cstdint>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/data_type.hpp"

namespace waywiser {

// Type and shape of an array on a remote GPU, whose elements lie in C order.
struct ArrayHead {
  DataType type = DataType::uint8;
  bool of_bools = false;             // the elements are bools, one byte each: the type is uint8
  std::vector<std::uint64_t> shape;  // empty: one number

  [[gnu::visibility("default")]] std::uint64_t elements() const noexcept;
  Bytes bytes() const noexcept { return elements() * bytes_of(type); }
  bool operator==(const ArrayHead&) const = default;
};

inline constexpr std::size_t most_dimensions = 32;
inline constexpr Bytes largest_remote_array = Bytes{1} << 48;

}  // namespace waywiser
