#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// Waits and tests, each with the deadline of the heap.

enum : int { NVSHMEM_CMP_EQ, NVSHMEM_CMP_NE, NVSHMEM_CMP_GT, NVSHMEM_CMP_GE, NVSHMEM_CMP_LT, NVSHMEM_CMP_LE };

#if defined(__CUDACC__)
namespace waywiser::nvshmem {

using one_sided::Comparison;

template <typename T>
WAYWISER_NVSHMEM_DEVICE std::size_t test_any_here(const T* words, std::size_t count, const int* status, Comparison how,
                                                  T value) {
  return with_ranks([&](const NvshmemRanks& ranks) -> std::size_t {
    const std::size_t found = ranks.test_any(words, count, status, how, value);
    return found == count ? SIZE_MAX : found;
  });
}
template <typename T>
WAYWISER_NVSHMEM_DEVICE std::size_t wait_any_here(const T* words, std::size_t count, const int* status, Comparison how,
                                                  T value) {
  return with_ranks([&](const NvshmemRanks& ranks) -> std::size_t {
    const std::size_t found = ranks.wait_until_any(words, count, status, how, value);
    return found == count ? SIZE_MAX : found;
  });
}
// Each word has a value of its own.
template <typename T>
WAYWISER_NVSHMEM_DEVICE std::size_t test_some_vector_here(const T* words, std::size_t count, std::size_t* places,
                                                          const int* status, Comparison how, const T* values) {
  return with_ranks([&](const NvshmemRanks& ranks) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      if ((status == nullptr || status[i] == 0) && ranks.test(words + i, how, values[i])) places[found++] = i;
    return found;
  });
}
template <typename T>
WAYWISER_NVSHMEM_DEVICE std::size_t test_any_vector_here(const T* words, std::size_t count, const int* status,
                                                         Comparison how, const T* values) {
  return with_ranks([&](const NvshmemRanks& ranks) -> std::size_t {
    for (std::size_t i = 0; i < count; ++i)
      if ((status == nullptr || status[i] == 0) && ranks.test(words + i, how, values[i])) return i;
    return SIZE_MAX;
  });
}
template <typename T>
WAYWISER_NVSHMEM_DEVICE bool test_all_vector_here(const T* words, std::size_t count, const int* status, Comparison how,
                                                  const T* values) {
  return with_ranks([&](const NvshmemRanks& ranks) {
    for (std::size_t i = 0; i < count; ++i)
      if ((status == nullptr || status[i] == 0) && !ranks.test(words + i, how, values[i])) return false;
    return true;
  });
}
template <typename T>
WAYWISER_NVSHMEM_DEVICE std::size_t wait_any_vector_here(const T* words, std::size_t count, const int* status,
                                                         Comparison how, const T* values) {
  std::size_t first = 0, found = SIZE_MAX;
  while (first < count && status != nullptr && status[first] != 0) ++first;
  if (first == count) return SIZE_MAX;
  with_ranks([&](const NvshmemRanks& ranks) {
    ranks.wait([&] { return (found = test_any_vector_here(words, count, status, how, values)) != SIZE_MAX; },
               [&] {
                 ranks.stop_late(words + first, how, values[first], ranks.g(words + first, ranks.rank()),
                                 one_sided::any_rank);
               });
  });
  return found;
}

}  // namespace waywiser::nvshmem

#define WAYWISER_NVSHMEM_WAITS(NAME, TYPE)                                                                            \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until(TYPE* ivar, int cmp, TYPE cmp_value) {                     \
    using namespace waywiser::nvshmem;                                                                                \
    with_ranks([&](const NvshmemRanks& r) { r.wait_until(ivar, static_cast<Comparison>(cmp), cmp_value); });          \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until_all(TYPE* ivars, std::size_t nelems, const int* status,    \
                                                               int cmp, TYPE cmp_value) {                             \
    using namespace waywiser::nvshmem;                                                                                \
    with_ranks([&](const NvshmemRanks& r) {                                                                           \
      r.wait_until_all(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_value);                               \
    });                                                                                                               \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_wait_until_any(TYPE* ivars, std::size_t nelems,                \
                                                                      const int* status, int cmp, TYPE cmp_value) {   \
    using namespace waywiser::nvshmem;                                                                                \
    return wait_any_here<TYPE>(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_value);                       \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_wait_until_some(                                               \
      TYPE* ivars, std::size_t nelems, std::size_t* indices, const int* status, int cmp, TYPE cmp_value) {            \
    using namespace waywiser::nvshmem;                                                                                \
    return with_ranks([&](const NvshmemRanks& r) -> std::size_t {                                                     \
      return r.wait_until_some(ivars, nelems, indices, status, static_cast<Comparison>(cmp), cmp_value);              \
    });                                                                                                               \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE void nvshmem_##NAME##_wait_until_all_vector(TYPE* ivars, std::size_t nelems,                \
                                                                      const int* status, int cmp, TYPE* cmp_values) { \
    using namespace waywiser::nvshmem;                                                                                \
    with_ranks([&](const NvshmemRanks& r) {                                                                           \
      r.wait_until_all_vector(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_values);                       \
    });                                                                                                               \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_wait_until_any_vector(                                         \
      TYPE* ivars, std::size_t nelems, const int* status, int cmp, TYPE* cmp_values) {                                \
    using namespace waywiser::nvshmem;                                                                                \
    return wait_any_vector_here<TYPE>(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_values);               \
  }                                                                                                                   \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_wait_until_some_vector(                                        \
      TYPE* ivars, std::size_t nelems, std::size_t* indices, const int* status, int cmp, TYPE* cmp_values) {          \
    using namespace waywiser::nvshmem;                                                                                \
    const auto how = static_cast<Comparison>(cmp);                                                                    \
    if (wait_any_vector_here<TYPE>(ivars, nelems, status, how, cmp_values) == SIZE_MAX) return 0;                     \
    return test_some_vector_here<TYPE>(ivars, nelems, indices, status, how, cmp_values);                              \
  }

#define WAYWISER_NVSHMEM_TESTS(NAME, TYPE)                                                                             \
  WAYWISER_NVSHMEM_DEVICE int nvshmem_##NAME##_test(TYPE* ivar, int cmp, TYPE cmp_value) {                             \
    using namespace waywiser::nvshmem;                                                                                 \
    return with_ranks(                                                                                                 \
        [&](const NvshmemRanks& r) { return r.test(ivar, static_cast<Comparison>(cmp), cmp_value) ? 1 : 0; });         \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE int nvshmem_##NAME##_test_all(TYPE* ivars, std::size_t nelems, const int* status, int cmp,   \
                                                        TYPE cmp_value) {                                              \
    using namespace waywiser::nvshmem;                                                                                 \
    return with_ranks([&](const NvshmemRanks& r) {                                                                     \
      return r.test_all(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_value) ? 1 : 0;                       \
    });                                                                                                                \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_test_any(TYPE* ivars, std::size_t nelems, const int* status,    \
                                                                int cmp, TYPE cmp_value) {                             \
    using namespace waywiser::nvshmem;                                                                                 \
    return test_any_here<TYPE>(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_value);                        \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_test_some(                                                      \
      TYPE* ivars, std::size_t nelems, std::size_t* indices, const int* status, int cmp, TYPE cmp_value) {             \
    using namespace waywiser::nvshmem;                                                                                 \
    return with_ranks([&](const NvshmemRanks& r) -> std::size_t {                                                      \
      return r.test_some(ivars, nelems, indices, status, static_cast<Comparison>(cmp), cmp_value);                     \
    });                                                                                                                \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE int nvshmem_##NAME##_test_all_vector(TYPE* ivars, std::size_t nelems, const int* status,     \
                                                               int cmp, TYPE* cmp_values) {                            \
    using namespace waywiser::nvshmem;                                                                                 \
    return test_all_vector_here<TYPE>(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_values) ? 1 : 0;        \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_test_any_vector(TYPE* ivars, std::size_t nelems,                \
                                                                       const int* status, int cmp, TYPE* cmp_values) { \
    using namespace waywiser::nvshmem;                                                                                 \
    return test_any_vector_here<TYPE>(ivars, nelems, status, static_cast<Comparison>(cmp), cmp_values);                \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_DEVICE std::size_t nvshmem_##NAME##_test_some_vector(                                               \
      TYPE* ivars, std::size_t nelems, std::size_t* indices, const int* status, int cmp, TYPE* cmp_values) {           \
    using namespace waywiser::nvshmem;                                                                                 \
    return test_some_vector_here<TYPE>(ivars, nelems, indices, status, static_cast<Comparison>(cmp), cmp_values);      \
  }

WAYWISER_NVSHMEM_WORD_TYPES(WAYWISER_NVSHMEM_WAITS)
WAYWISER_NVSHMEM_WORD_TYPES(WAYWISER_NVSHMEM_TESTS)

// What the word is now, with what its writer has ordered before it.
WAYWISER_NVSHMEM_DEVICE std::uint64_t nvshmem_signal_fetch(std::uint64_t* sig_addr) {
  return waywiser::nvshmem::NvshmemBlock().acquire(sig_addr);
}
// Returns what ended the wait.
WAYWISER_NVSHMEM_DEVICE std::uint64_t nvshmem_signal_wait_until(std::uint64_t* sig_addr, int cmp,
                                                                std::uint64_t cmp_val) {
  using namespace waywiser::nvshmem;
  return with_ranks([&](const NvshmemRanks& ranks) {
    const auto how = static_cast<Comparison>(cmp);
    std::uint64_t seen = 0;
    ranks.wait([&] { return waywiser::one_sided::compares(seen = ranks.gpu().acquire(sig_addr), how, cmp_val); },
               [&] { ranks.stop_late(sig_addr, how, cmp_val, seen, waywiser::one_sided::any_rank); });
    return seen;
  });
}
#endif

WAYWISER_NVSHMEM_HOST void nvshmemx_signal_wait_until_on_stream(std::uint64_t* sig_addr, int cmp, std::uint64_t cmp_val,
                                                                cudaStream_t stream) {
  waywiser::nvshmem::wait_until(sig_addr, cmp, cmp_val, waywiser::nvshmem::on(stream));
}
WAYWISER_NVSHMEM_HOST void nvshmemx_uint64_wait_until_on_stream(std::uint64_t* ivar, int cmp, std::uint64_t cmp_value,
                                                                cudaStream_t stream) {
  waywiser::nvshmem::wait_until(ivar, cmp, cmp_value, waywiser::nvshmem::on(stream));
}
