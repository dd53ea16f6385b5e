#pragma once

#include <type_traits>

#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// Integers wrap.
template <typename T>
WAYWISER_DEVICE inline T combine(ReduceOp op, T a, T b) {
  using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T,
                                      std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>>;
  if (op == ReduceOp::prod) return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
  if (op == ReduceOp::min) return b < a ? b : a;
  if (op == ReduceOp::max) return a < b ? b : a;
  return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
}

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
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) values_[i] = combine(op, values_[i], Gpu::widen(numbers.values[i]));
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
