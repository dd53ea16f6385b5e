#include "waywiser/comm/reduce.hpp"

#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "waywiser/kernels/block/complex.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser {
namespace {

float wide(Float16 value) { return to_float(value); }
float wide(Bfloat16 value) { return to_float(value); }
float wide(Float8E4m3 value) { return to_float(value); }
float wide(Float8E5m2 value) { return to_float(value); }
template <typename T>
T wide(T value) {
  return value;
}

template <typename T, typename Wide>
T narrow(Wide value) {
  if constexpr (std::is_same_v<T, Float16>)
    return to_float16(value);
  else if constexpr (std::is_same_v<T, Bfloat16>)
    return to_bfloat16(value);
  else if constexpr (std::is_same_v<T, Float8E4m3>)
    return to_float8_e4m3fn(value);
  else if constexpr (std::is_same_v<T, Float8E5m2>)
    return to_float8_e5m2(value);
  else
    return static_cast<T>(value);
}

// Integer arithmetic is done unsigned, so that it wraps.
template <typename T>
auto wrapping(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<std::uint64_t>(value);
  else
    return value;
}

struct Sum {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) + wrapping(b));
  }
};
struct Product {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(wrapping(a) * wrapping(b));
  }
};
// Both orders give the same bits, on which ranks that exchange values rely: a NaN wins, and -0 is less than 0.
template <typename T>
T one_of(T a, T b, bool second, bool negative_zero) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) == negative_zero ? a : b;
  }
  return second ? b : a;
}
struct Smaller {
  template <typename T>
  T operator()(T a, T b) const {
    return one_of(a, b, b < a, true);
  }
};
struct Larger {
  template <typename T>
  T operator()(T a, T b) const {
    return one_of(a, b, a < b, false);
  }
};

struct BitAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
// The same of whether the numbers are other than 0.
template <typename Bits>
struct Logical {
  template <typename T>
  T operator()(T a, T b) const {
    return Bits()(static_cast<T>(a != 0), static_cast<T>(b != 0));
  }
};

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T, typename Op>
void combine(std::byte* destination, const std::byte* source, std::size_t count, Op op) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* at = destination + i * sizeof(T);
    const T result = narrow<T>(op(wide(load<T>(at)), wide(load<T>(source + i * sizeof(T)))));
    std::memcpy(at, &result, sizeof result);
  }
}

template <std::integral T>
void combine_bits(ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count) {
  switch (op) {
    case ReduceOp::band: return combine<T>(destination, source, count, BitAnd());
    case ReduceOp::bor: return combine<T>(destination, source, count, BitOr());
    case ReduceOp::bxor: return combine<T>(destination, source, count, BitXor());
    case ReduceOp::land: return combine<T>(destination, source, count, Logical<BitAnd>());
    case ReduceOp::lor: return combine<T>(destination, source, count, Logical<BitOr>());
    case ReduceOp::lxor: return combine<T>(destination, source, count, Logical<BitXor>());
    default: return;
  }
}

template <typename T>
void reduce_as(ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: return combine<T>(destination, source, count, Sum());
    case ReduceOp::prod: return combine<T>(destination, source, count, Product());
    default: break;
  }
  if constexpr (!is_complex(DataTypeOf<T>::value)) {
    if (op == ReduceOp::min) return combine<T>(destination, source, count, Smaller());
    if (op == ReduceOp::max) return combine<T>(destination, source, count, Larger());
  }
  if constexpr (std::is_integral_v<T>) combine_bits<T>(op, destination, source, count);
}

// The divisor for the number of ranks.
template <typename T>
struct DivisorOf {
  using Type = T;
};
template <std::signed_integral T>
struct DivisorOf<T> {
  using Type = std::int64_t;
};
template <std::unsigned_integral T>
struct DivisorOf<T> {
  using Type = std::uint64_t;
};
template <typename Real>
struct DivisorOf<Complex<Real>> {
  using Type = Real;
};
template <typename T>
using Divisor = typename DivisorOf<T>::Type;

template <typename T>
void average_as(std::byte* destination, std::size_t count, int ranks) {
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* at = destination + i * sizeof(T);
    const auto value = wide(load<T>(at));
    const T result = narrow<T>(value / static_cast<Divisor<std::remove_const_t<decltype(value)>>>(ranks));
    std::memcpy(at, &result, sizeof result);
  }
}

// Calls `function` with a value of the C++ type of `type`.
template <typename Function>
void with_type(DataType type, Function function) {
  switch (type) {
    case DataType::float64: return function(double{});
    case DataType::float32: return function(float{});
    case DataType::float16: return function(Float16{});
    case DataType::bfloat16: return function(Bfloat16{});
    case DataType::int8: return function(std::int8_t{});
    case DataType::int16: return function(std::int16_t{});
    case DataType::int32: return function(std::int32_t{});
    case DataType::int64: return function(std::int64_t{});
    case DataType::uint8: return function(std::uint8_t{});
    case DataType::uint16: return function(std::uint16_t{});
    case DataType::uint32: return function(std::uint32_t{});
    case DataType::uint64: return function(std::uint64_t{});
    case DataType::complex64: return function(Complex<float>{});
    case DataType::complex128: return function(Complex<double>{});
    case DataType::float8_e4m3fn: return function(Float8E4m3{});
    case DataType::float8_e5m2: return function(Float8E5m2{});
  }
}

}  // namespace

void reduce(DataType type, ReduceOp op, std::byte* destination, const std::byte* source, std::size_t count) {
  check_reduction(type, op);
  with_type(type, [&]<typename T>(T) { reduce_as<T>(op, destination, source, count); });
}

void average(DataType type, std::byte* destination, std::size_t count, int ranks) {
  with_type(type, [&]<typename T>(T) { average_as<T>(destination, count, ranks); });
}

}  // namespace waywiser
