#pragma once

#include <type_traits>

#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// Integers wrap.
template <typename T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T,
                                    std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>>;

// The numbers of one word, two-byte floats as floats until the end. Gpu gives widen() and narrow<T>().
template <typename Gpu, typename T, typename Word>
class Accumulator {
 public:
  static constexpr unsigned count = sizeof(Word) / sizeof(T);

  WAYWISER_DEVICE explicit Accumulator(const Word& word) {
    const Numbers numbers = as_numbers(word);
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) values_[i] = Gpu::widen(numbers.values[i]);
  }

  WAYWISER_DEVICE void add(ReduceOp op, const Word& word) {
    const Numbers numbers = as_numbers(word);
    switch (op) {
      case ReduceOp::prod:
        return combine(numbers,
                       [](Wide a, Wide b) { return static_cast<Wide>(Wrapping<Wide>(a) * Wrapping<Wide>(b)); });
      case ReduceOp::min: return combine(numbers, [](Wide a, Wide b) { return b < a ? b : a; });
      case ReduceOp::max: return combine(numbers, [](Wide a, Wide b) { return a < b ? b : a; });
      default:
        return combine(numbers,
                       [](Wide a, Wide b) { return static_cast<Wide>(Wrapping<Wide>(a) + Wrapping<Wide>(b)); });
    }
  }

  WAYWISER_DEVICE Word result(ReduceOp op, unsigned ranks) const {
    Numbers numbers;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) {
      Wide value = values_[i];
      if (op == ReduceOp::avg) value = divide(value, ranks);
      numbers.values[i] = Gpu::template narrow<T>(value);
    }
    Word word;
    __builtin_memcpy(static_cast<void*>(&word), &numbers, sizeof word);
    return word;
  }

 private:
  using Wide = std::conditional_t<is_half<T>, float, T>;
  struct Numbers {
    T values[count];
  };

  template <typename Function>
  WAYWISER_DEVICE void combine(const Numbers& numbers, Function f) {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) values_[i] = f(values_[i], Gpu::widen(numbers.values[i]));
  }

  WAYWISER_DEVICE static Numbers as_numbers(const Word& word) {
    Numbers numbers;
    __builtin_memcpy(static_cast<void*>(&numbers), &word, sizeof numbers);
    return numbers;
  }
  WAYWISER_DEVICE static Wide divide(Wide value, unsigned ranks) {
    if constexpr (std::is_integral_v<Wide>)
      return static_cast<Wide>(static_cast<std::int64_t>(value) / static_cast<std::int64_t>(ranks));
    else
      return value / static_cast<Wide>(ranks);
  }

  Wide values_[count];
};

}  // namespace waywiser::fused
