#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "waywiser/kernels/device_code.hpp"
#include "waywiser/kernels/elementwise.hpp"

namespace waywiser {

struct ElementwiseArrays {
  std::byte* result = nullptr;
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  std::uint64_t count = 0;
};

// Signed overflow is undefined in C++: integers are added and multiplied as unsigned ones.
template <typename T>
WAYWISER_DEVICE T element_of(const Elementwise& operation, T a, T b) {
  if (operation.kind == Elementwise::Kind::scale) return static_cast<T>(static_cast<double>(a) * operation.factor);
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    return static_cast<T>(operation.kind == Elementwise::Kind::multiply
                              ? x * y
                              : static_cast<Unsigned>(x + static_cast<Unsigned>(operation.times) * y));
  } else {
    if (operation.kind == Elementwise::Kind::multiply) return a * b;
    T sum = a;
    for (std::uint64_t i = 0; i < operation.times; ++i) sum += b;
    return sum;
  }
}

template <typename T, typename Context>
WAYWISER_DEVICE void elementwise_body(const Context& at, const Elementwise& operation,
                                      const ElementwiseArrays& arrays) {
  auto* result = reinterpret_cast<T*>(arrays.result);
  const auto* a = reinterpret_cast<const T*>(arrays.a);
  const auto* b = reinterpret_cast<const T*>(arrays.b);
  const std::uint64_t first = std::uint64_t{at.block} * at.threads + at.thread;
  const std::uint64_t step = std::uint64_t{at.blocks} * at.threads;
  for (std::uint64_t i = first; i < arrays.count; i += step)
    result[i] = element_of(operation, a[i], b == nullptr ? T{} : b[i]);
}

// function(T{}) with the C++ type.
template <typename Function>
void with_element_type(ElementType type, Function function) {
  switch (type) {
    case ElementType::float64: return function(double{});
    case ElementType::float32: return function(float{});
    case ElementType::int64: return function(std::int64_t{});
    case ElementType::int32: return function(std::int32_t{});
  }
}

}  // namespace waywiser
