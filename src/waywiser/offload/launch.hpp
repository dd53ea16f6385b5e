#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace waywiser {

// What a kernel is given: an array by its number, or the bits of a number of this type.
struct KernelArgument {
  enum class Kind : std::uint8_t { array, int32, int64, float32, float64 };

  Kind kind = Kind::array;
  std::uint64_t bits = 0;

  static KernelArgument of_array(std::uint64_t array) { return {Kind::array, array}; }
  static KernelArgument of(std::int32_t value) { return {Kind::int32, std::bit_cast<std::uint32_t>(value)}; }
  static KernelArgument of(std::int64_t value) { return {Kind::int64, std::bit_cast<std::uint64_t>(value)}; }
  static KernelArgument of(float value) { return {Kind::float32, std::bit_cast<std::uint32_t>(value)}; }
  static KernelArgument of(double value) { return {Kind::float64, std::bit_cast<std::uint64_t>(value)}; }
  bool operator==(const KernelArgument&) const = default;
};

// x, y and z of a grid in blocks and of a block in threads, and bytes of dynamic shared memory of a block.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t shared = 0;
  bool operator==(const LaunchShape&) const = default;
};

}  // namespace waywiser
