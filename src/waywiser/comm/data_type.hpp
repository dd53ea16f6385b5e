#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace waywiser {

struct Float16;  // kernels/block/half.hpp
struct Bfloat16;
struct Float8E4m3;  // kernels/block/float8.hpp
struct Float8E5m2;

// The values appear in messages and in the C interface; they fit in four bits.
enum class DataType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  complex64,
  complex128,
  float8_e4m3fn,
  float8_e5m2
};
inline constexpr int data_types = 16;

// avg is the sum divided by the number of ranks; for integers it is rounded toward zero. band, bor and bxor work on the
// bits of integers; land, lor and lxor on whether they are other than 0, and give 1 or 0. The values fit in four bits.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg, band, bor, bxor, land, lor, lxor };
inline constexpr int reduce_ops = 11, arithmetic_ops = 5;

// An element has 2 to this power of bytes: what divides by bytes_of() shifts.
constexpr unsigned log2_bytes_of(DataType type) noexcept {
  switch (type) {
    case DataType::complex128: return 4;
    case DataType::float64:
    case DataType::int64:
    case DataType::uint64:
    case DataType::complex64: return 3;
    case DataType::float32:
    case DataType::int32:
    case DataType::uint32: return 2;
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::int16:
    case DataType::uint16: return 1;
    case DataType::int8:
    case DataType::uint8:
    case DataType::float8_e4m3fn:
    case DataType::float8_e5m2: return 0;
  }
  return 0;
}
constexpr std::size_t bytes_of(DataType type) noexcept { return std::size_t{1} << log2_bytes_of(type); }

constexpr bool is_complex(DataType type) noexcept {
  return type == DataType::complex64 || type == DataType::complex128;
}
constexpr bool is_integer(DataType type) noexcept { return type >= DataType::int8 && type <= DataType::uint64; }
// Those that kernels and NCCL have; the others are for integers, by hosts.
constexpr bool is_arithmetic(ReduceOp op) noexcept { return static_cast<int>(op) < arithmetic_ops; }
// False for min and max of complex numbers, which have no order, and for bits of what is no integer.
constexpr bool has_reduction(DataType type, ReduceOp op) noexcept {
  if (!is_arithmetic(op)) return is_integer(type);
  return !is_complex(type) || (op != ReduceOp::min && op != ReduceOp::max);
}
// "there is no min of complex64, which has no order"; check_reduction() throws it as invalid_input if has_reduction()
// is false.
[[gnu::visibility("default")]] std::string why_no_reduction(DataType type, ReduceOp op);
[[gnu::visibility("default")]] void check_reduction(DataType type, ReduceOp op);

[[gnu::visibility("default")]] std::string_view name(DataType type) noexcept;
[[gnu::visibility("default")]] std::string_view name(ReduceOp op) noexcept;
// Both throw invalid_input that lists the valid names.
[[gnu::visibility("default")]] DataType parse_data_type(std::string_view text);
[[gnu::visibility("default")]] ReduceOp parse_reduce_op(std::string_view text);

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
// By size and sign: long long and char too, and bool as uint8, for which max is "or" and min is "and".
template <typename T>
  requires(std::is_integral_v<T> && sizeof(T) <= 8)
struct DataTypeOf<T> {
  static constexpr DataType smallest = std::is_signed_v<T> ? DataType::int8 : DataType::uint8;
  static constexpr auto value = static_cast<DataType>(static_cast<int>(smallest) + std::countr_zero(sizeof(T)));
};
template <>
struct DataTypeOf<Float8E4m3> {
  static constexpr DataType value = DataType::float8_e4m3fn;
};
template <>
struct DataTypeOf<Float8E5m2> {
  static constexpr DataType value = DataType::float8_e5m2;
};
// std::complex, and the complex types of CUDA's libraries.
template <template <typename> typename Complex, typename Real>
  requires(std::is_floating_point_v<Real> && sizeof(Complex<Real>) == 2 * sizeof(Real) && sizeof(Real) <= 8) &&
          requires(const Complex<Real>& number) { number.real() + number.imag(); }
struct DataTypeOf<Complex<Real>> {
  static constexpr DataType value = sizeof(Real) == 4 ? DataType::complex64 : DataType::complex128;
};
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::uint8;
};

}  // namespace waywiser
