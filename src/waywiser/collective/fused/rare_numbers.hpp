#pragma once

#include <concepts>
#include <type_traits>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/kernels/block/complex.hpp"
#include "waywiser/kernels/block/float8.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::fused {

// Represents all number types that few programs reduce. The kernel gets the type at run time: one kernel is compiled
// for all of them.
struct RareNumber {};

// Another type with the same result bits that kernels support; else the type itself. Integers wrap, signed or not, and
// complex numbers are added part by part.
constexpr DataType computed_as(DataType type, ReduceOp op) noexcept {
  const bool any_sign = op == ReduceOp::sum || op == ReduceOp::prod;
  switch (type) {
    case DataType::uint16: return any_sign ? DataType::int16 : type;
    case DataType::uint32: return any_sign ? DataType::int32 : type;
    case DataType::uint64: return any_sign ? DataType::int64 : type;
    case DataType::complex64: return op == ReduceOp::prod ? type : DataType::float32;
    case DataType::complex128: return op == ReduceOp::prod ? type : DataType::float64;
    default: return type;
  }
}
constexpr bool is_rare(DataType type) noexcept { return type > DataType::uint8; }
// An LL packet has eight bytes, which one thread reduces.
constexpr bool fits_into_packets(DataType type, ReduceOp op) noexcept { return bytes_of(computed_as(type, op)) <= 8; }

template <typename T>
inline constexpr bool is_float8 = std::is_same_v<T, Float8E4m3> || std::is_same_v<T, Float8E5m2>;

// The type used to compute with numbers of a type.
template <typename T>
WAYWISER_DEVICE auto rare_wide(T value) {
  if constexpr (is_float8<T>)
    return to_float(value);
  else
    return value;
}
template <typename T, typename Wide>
WAYWISER_DEVICE T rare_narrow(Wide value) {
  if constexpr (std::is_same_v<T, Float8E4m3>)
    return to_float8_e4m3fn(value);
  else if constexpr (std::is_same_v<T, Float8E5m2>)
    return to_float8_e5m2(value);
  else
    return value;
}

template <typename Gpu, typename Wide>
WAYWISER_DEVICE Wide rare_combined(ReduceOp op, Wide a, Wide b) {
  if constexpr (std::is_arithmetic_v<Wide>) {
    if (op == ReduceOp::min) return Gpu::least(a, b);
    if (op == ReduceOp::max) return Gpu::greatest(a, b);
  }
  // At least unsigned int: the product of two uint16 would be an int, which must not overflow.
  if constexpr (std::unsigned_integral<Wide>)
    return static_cast<Wide>(op == ReduceOp::prod ? std::uint64_t{a} * b : std::uint64_t{a} + b);
  else
    return op == ReduceOp::prod ? a * b : a + b;
}

template <typename Wide>
WAYWISER_DEVICE Wide rare_divided(Wide value, unsigned ranks) {
  if constexpr (std::is_integral_v<Wide>)
    return static_cast<Wide>(value / ranks);
  else if constexpr (std::is_floating_point_v<Wide>)
    return value / static_cast<Wide>(ranks);
  else
    return value / static_cast<decltype(value.re)>(ranks);
}

// Combines the words of each rank, `stride` words apart, in rank order.
template <typename Gpu, typename T, typename Word>
WAYWISER_DEVICE Word rare_reduced_as(ReduceOp op, unsigned ranks, const Word* words, unsigned stride) {
  Word result = words[0];
  if constexpr (sizeof(T) <= sizeof(Word)) {
    WAYWISER_ROLLED
    for (unsigned at = 0; at + sizeof(T) <= sizeof(Word); at += sizeof(T)) {
      const auto number = [&](unsigned rank) {
        T value;
        __builtin_memcpy(static_cast<void*>(&value), reinterpret_cast<const std::byte*>(words + rank * stride) + at,
                         sizeof value);
        return rare_wide(value);
      };
      auto sum = number(0);
      WAYWISER_ROLLED
      for (unsigned rank = 1; rank < ranks; ++rank) sum = rare_combined<Gpu>(op, sum, number(rank));
      const T reduced = rare_narrow<T>(op == ReduceOp::avg ? rare_divided(sum, ranks) : sum);
      __builtin_memcpy(reinterpret_cast<std::byte*>(&result) + at, &reduced, sizeof reduced);
    }
  }
  return result;
}

template <typename Gpu, typename Word>
WAYWISER_DEVICE WAYWISER_APART Word rare_reduced(DataType type, ReduceOp op, unsigned ranks, const Word* words,
                                                 unsigned stride) {
  switch (type) {
    case DataType::uint16: return rare_reduced_as<Gpu, std::uint16_t>(op, ranks, words, stride);
    case DataType::uint32: return rare_reduced_as<Gpu, std::uint32_t>(op, ranks, words, stride);
    case DataType::uint64: return rare_reduced_as<Gpu, std::uint64_t>(op, ranks, words, stride);
    case DataType::complex64: return rare_reduced_as<Gpu, Complex<float>>(op, ranks, words, stride);
    case DataType::complex128: return rare_reduced_as<Gpu, Complex<double>>(op, ranks, words, stride);
    case DataType::float8_e4m3fn: return rare_reduced_as<Gpu, Float8E4m3>(op, ranks, words, stride);
    case DataType::float8_e5m2: return rare_reduced_as<Gpu, Float8E5m2>(op, ranks, words, stride);
    default: return words[0];
  }
}

}  // namespace waywiser::fused
