#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// Atomics, which order nothing.

#if defined(__CUDACC__)
namespace waywiser::nvshmem {

template <typename T>
WAYWISER_NVSHMEM_DEVICE T swap_here(T* destination, T value, int pe) {
  return with_ranks([&](const NvshmemRanks& ranks) {
    if constexpr (std::is_integral_v<T>) {
      return ranks.atomic_swap(destination, value, pe);
    } else {
      using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      return __builtin_bit_cast(
          T, ranks.atomic_swap(reinterpret_cast<Bits*>(destination), __builtin_bit_cast(Bits, value), pe));
    }
  });
}

}  // namespace waywiser::nvshmem

#define WAYWISER_NVSHMEM_ACCESSES(NAME, TYPE)                                                 \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch(const TYPE* source, int pe) {    \
    using namespace waywiser::nvshmem;                                                        \
    return with_ranks([&](const NvshmemRanks& r) { return r.atomic_fetch(source, pe); });     \
  }                                                                                           \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_set(TYPE* dest, TYPE value, int pe) {  \
    using namespace waywiser::nvshmem;                                                        \
    with_ranks([&](const NvshmemRanks& r) { r.atomic_set(dest, value, pe); });                \
  }                                                                                           \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_swap(TYPE* dest, TYPE value, int pe) { \
    return waywiser::nvshmem::swap_here<TYPE>(dest, value, pe);                               \
  }
#define WAYWISER_NVSHMEM_SUMS(NAME, TYPE)                                                                        \
  WAYWISER_NVSHMEM_ACCESSES(NAME, TYPE)                                                                          \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_compare_swap(TYPE* dest, TYPE cond, TYPE value, int pe) { \
    using namespace waywiser::nvshmem;                                                                           \
    return with_ranks([&](const NvshmemRanks& r) { return r.atomic_compare_swap(dest, cond, value, pe); });      \
  }                                                                                                              \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_inc(TYPE* dest, int pe) {                           \
    using namespace waywiser::nvshmem;                                                                           \
    return with_ranks([&](const NvshmemRanks& r) { return r.atomic_fetch_inc(dest, pe); });                      \
  }                                                                                                              \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_inc(TYPE* dest, int pe) {                                 \
    using namespace waywiser::nvshmem;                                                                           \
    with_ranks([&](const NvshmemRanks& r) { r.atomic_inc(dest, pe); });                                          \
  }                                                                                                              \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_add(TYPE* dest, TYPE value, int pe) {               \
    using namespace waywiser::nvshmem;                                                                           \
    return with_ranks([&](const NvshmemRanks& r) { return r.atomic_fetch_add(dest, value, pe); });               \
  }                                                                                                              \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_add(TYPE* dest, TYPE value, int pe) {                     \
    using namespace waywiser::nvshmem;                                                                           \
    with_ranks([&](const NvshmemRanks& r) { r.atomic_add(dest, value, pe); });                                   \
  }
#define WAYWISER_NVSHMEM_BITS(NAME, TYPE)    \
  WAYWISER_NVSHMEM_BIT_CALL(NAME, TYPE, and) \
  WAYWISER_NVSHMEM_BIT_CALL(NAME, TYPE, or)  \
  WAYWISER_NVSHMEM_BIT_CALL(NAME, TYPE, xor)
#define WAYWISER_NVSHMEM_BIT_CALL(NAME, TYPE, OP)                                                   \
  WAYWISER_NVSHMEM_DEVICE TYPE nvshmem_##NAME##_atomic_fetch_##OP(TYPE* dest, TYPE value, int pe) { \
    using namespace waywiser::nvshmem;                                                              \
    return with_ranks([&](const NvshmemRanks& r) { return r.atomic_fetch_##OP(dest, value, pe); }); \
  }                                                                                                 \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_atomic_##OP(TYPE* dest, TYPE value, int pe) {       \
    using namespace waywiser::nvshmem;                                                              \
    with_ranks([&](const NvshmemRanks& r) { r.atomic_fetch_##OP(dest, value, pe); });               \
  }

WAYWISER_NVSHMEM_WORD_TYPES(WAYWISER_NVSHMEM_SUMS)
WAYWISER_NVSHMEM_ACCESSES(float, float)
WAYWISER_NVSHMEM_ACCESSES(double, double)
WAYWISER_NVSHMEM_BIT_TYPES(WAYWISER_NVSHMEM_BITS)
#endif
