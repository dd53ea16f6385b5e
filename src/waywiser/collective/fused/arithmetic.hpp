#pragma once

#include <type_traits>

#include "waywiser/collective/fused/landing.hpp"
#include "waywiser/collective/fused/rare_numbers.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser::fused {

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

// Integers wrap.
template <typename T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T,
                                    std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>>;

struct Add {
  template <typename Wide>
  WAYWISER_DEVICE Wide operator()(Wide a, Wide b) const {
    return static_cast<Wide>(Wrapping<Wide>(a) + Wrapping<Wide>(b));
  }
};
struct Multiply {
  template <typename Wide>
  WAYWISER_DEVICE Wide operator()(Wide a, Wide b) const {
    return static_cast<Wide>(Wrapping<Wide>(a) * Wrapping<Wide>(b));
  }
};
// Both orders give the same bits: a NaN wins, always the same one, and -0 is less than 0. As on the host
// (comm/reduce.cpp).
template <typename Gpu>
struct Least {
  template <typename Wide>
  WAYWISER_DEVICE Wide operator()(Wide a, Wide b) const {
    return Gpu::least(a, b);
  }
};
template <typename Gpu>
struct Greatest {
  template <typename Wide>
  WAYWISER_DEVICE Wide operator()(Wide a, Wide b) const {
    return Gpu::greatest(a, b);
  }
};

// Calls f(function that combines two numbers). It branches once for many numbers, so that the code between them is
// short.
template <typename Gpu, typename Function>
WAYWISER_DEVICE inline void with_combination(ReduceOp op, Function f) {
  switch (op) {
    case ReduceOp::prod: return f(Multiply{});
    case ReduceOp::min: return f(Least<Gpu>{});
    case ReduceOp::max: return f(Greatest<Gpu>{});
    default: return f(Add{});
  }
}

// Combines the numbers of one word; two-byte floats stay floats until the end. Gpu provides widen(), narrow<T>(),
// least() and greatest().
template <typename Gpu, typename T, typename Word>
class Accumulator {
 public:
  WAYWISER_DEVICE explicit Accumulator(const Word& word) {
    const Numbers numbers = as_numbers(word);
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) values_.values[i] = Gpu::widen(numbers.values[i]);
  }

  template <typename Combination>
  WAYWISER_DEVICE void add(Combination combine, const Word& word) {
    const Numbers numbers = as_numbers(word);
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) values_.values[i] = combine(values_.values[i], Gpu::widen(numbers.values[i]));
  }

  WAYWISER_DEVICE Word result(ReduceOp op, unsigned ranks) const {
    return narrowed(op == ReduceOp::avg ? divided(values_, ranks) : values_);
  }

 private:
  using Wide = std::conditional_t<is_half<T>, float, T>;
  static constexpr unsigned count = sizeof(Word) / sizeof(T);
  struct Numbers {
    T values[count];
  };
  struct WideNumbers {
    Wide values[count];
  };

  WAYWISER_DEVICE static Numbers as_numbers(const Word& word) {
    Numbers numbers;
    __builtin_memcpy(static_cast<void*>(&numbers), &word, sizeof numbers);
    return numbers;
  }
  WAYWISER_DEVICE static Word narrowed(const WideNumbers& wide) {
    Numbers numbers;
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) numbers.values[i] = Gpu::template narrow<T>(wide.values[i]);
    Word word;
    __builtin_memcpy(static_cast<void*>(&word), &numbers, sizeof word);
    return word;
  }
  WAYWISER_DEVICE WAYWISER_APART static WideNumbers divided(WideNumbers numbers, unsigned ranks) {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) numbers.values[i] = divide(numbers.values[i], ranks);
    return numbers;
  }
  WAYWISER_DEVICE static Wide divide(Wide value, unsigned ranks) {
    if constexpr (std::is_integral_v<Wide>)
      return static_cast<Wide>(static_cast<std::int64_t>(value) / static_cast<std::int64_t>(ranks));
    else
      return value / static_cast<Wide>(ranks);
  }

  WideNumbers values_;
};

// Combines the words of each rank, in rank order.
template <typename Gpu, typename T, typename Work, typename Word, unsigned most, unsigned count>
WAYWISER_DEVICE inline void reduce_words(const Work& work, unsigned ranks, const Word (&words)[most][count],
                                         Word (&sums)[count]) {
  if constexpr (std::is_same_v<T, RareNumber>) {
    WAYWISER_ROLLED
    for (unsigned i = 0; i < count; ++i) sums[i] = rare_reduced<Gpu>(work.type, work.op, ranks, &words[0][i], count);
  } else {
    with_combination<Gpu>(work.op, [&](auto combination) {
      WAYWISER_UNROLL
      for (unsigned i = 0; i < count; ++i) {
        Accumulator<Gpu, T, Word> sum(words[0][i]);
        WAYWISER_UNROLL
        for (unsigned rank = 1; rank < most; ++rank)
          if (rank < ranks) sum.add(combination, words[rank][i]);
        sums[i] = sum.result(work.op, ranks);
      }
    });
  }
}

}  // namespace waywiser::fused
