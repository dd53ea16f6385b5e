#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace waywiser {

struct Float16;  // kernels/block/half.hpp
struct Bfloat16;

enum class DataType : std::uint8_t { float64, float32, float16, bfloat16, int8, int16, int32, int64, uint8 };
inline constexpr int data_types = 9;

// avg is the sum divided by the number of ranks; of integers it is rounded toward zero.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };
inline constexpr int reduce_ops = 5;

constexpr std::size_t bytes_of(DataType type) noexcept {
  switch (type) {
    case DataType::float64:
    case DataType::int64: return 8;
    case DataType::float32:
    case DataType::int32: return 4;
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::int16: return 2;
    case DataType::int8:
    case DataType::uint8: return 1;
  }
  return 1;
}

[[gnu::visibility("default")]] std::string_view name(DataType type) noexcept;
[[gnu::visibility("default")]] std::string_view name(ReduceOp op) noexcept;
// Both throw invalid_input with the names that there are.
DataType parse_data_type(std::string_view text);
ReduceOp parse_reduce_op(std::string_view text);

// The DataType of a C++ type, for views over arrays.
template <typename T>
struct DataTypeOf;
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::float64;
};
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::float32;
};
template <>
struct DataTypeOf<Float16> {
  static constexpr DataType value = DataType::float16;
};
template <>
struct DataTypeOf<Bfloat16> {
  static constexpr DataType value = DataType::bfloat16;
};
template <>
struct DataTypeOf<std::int8_t> {
  static constexpr DataType value = DataType::int8;
};
template <>
struct DataTypeOf<std::int16_t> {
  static constexpr DataType value = DataType::int16;
};
template <>
struct DataTypeOf<std::int32_t> {
  static constexpr DataType value = DataType::int32;
};
template <>
struct DataTypeOf<std::int64_t> {
  static constexpr DataType value = DataType::int64;
};
template <>
struct DataTypeOf<std::uint8_t> {
  static constexpr DataType value = DataType::uint8;
};
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::uint8;
};

}  // namespace waywiser
