#pragma once

// One-sided communication as functions of C, for kernels in other languages that link them: waywiser.numba. `terms` and
// `team` are the addresses of HeapTerms and TeamTerms in memory that the GPU reaches; places are offsets in the heap.
#include "waywiser/heap/device/cuda_heap_block.cuh"
#include "waywiser/heap/device/one_sided.hpp"
#include "waywiser/heap/device/team.hpp"

namespace waywiser::one_sided {

// run(ranks) with the heap of the terms.
template <typename Run>
__device__ auto with_heap(std::uint64_t terms, Run run) {
  CudaHeapBlock block;
  const OneSided<CudaHeapBlock> ranks(block, *reinterpret_cast<const HeapTerms*>(terms));
  return run(ranks);
}

}  // namespace waywiser::one_sided

#define WAYWISER_C_TRANSFERS(SUFFIX, SCOPE)                                                                            \
  extern "C" __device__ int waywiser_put##SUFFIX(std::uint64_t terms, std::uint64_t destination, std::uint64_t source, \
                                                 std::uint64_t bytes, int rank) {                                      \
    using namespace waywiser::one_sided;                                                                               \
    with_heap(terms, [&](const auto& ranks) {                                                                          \
      ranks.template put<Scope::SCOPE>(ranks.template at<std::byte>(destination),                                      \
                                       ranks.template at<std::byte>(source), bytes, rank);                             \
    });                                                                                                                \
    return 0;                                                                                                          \
  }                                                                                                                    \
  extern "C" __device__ int waywiser_get##SUFFIX(std::uint64_t terms, std::uint64_t destination, std::uint64_t source, \
                                                 std::uint64_t bytes, int rank) {                                      \
    using namespace waywiser::one_sided;                                                                               \
    with_heap(terms, [&](const auto& ranks) {                                                                          \
      ranks.template get<Scope::SCOPE>(ranks.template at<std::byte>(destination),                                      \
                                       ranks.template at<std::byte>(source), bytes, rank);                             \
    });                                                                                                                \
    return 0;                                                                                                          \
  }                                                                                                                    \
  extern "C" __device__ int waywiser_put_with_signal##SUFFIX(                                                          \
      std::uint64_t terms, std::uint64_t destination, std::uint64_t source, std::uint64_t bytes, std::uint64_t signal, \
      std::uint64_t value, int adds, int rank) {                                                                       \
    using namespace waywiser::one_sided;                                                                               \
    with_heap(terms, [&](const auto& ranks) {                                                                          \
      ranks.template put_with_signal<Scope::SCOPE>(                                                                    \
          ranks.template at<std::byte>(destination), ranks.template at<std::byte>(source), bytes,                      \
          ranks.template at<std::uint64_t>(signal), value, adds != 0 ? SignalOp::add : SignalOp::set, rank);           \
    });                                                                                                                \
    return 0;                                                                                                          \
  }                                                                                                                    \
  extern "C" __device__ int waywiser_wait_until##SUFFIX(std::uint64_t terms, std::uint64_t word, int comparison,       \
                                                        std::uint64_t value, int from) {                               \
    using namespace waywiser::one_sided;                                                                               \
    with_heap(terms, [&](const auto& ranks) {                                                                          \
      ranks.template wait_until<Scope::SCOPE>(ranks.template at<std::uint64_t>(word),                                  \
                                              static_cast<Comparison>(comparison), value, from);                       \
    });                                                                                                                \
    return 0;                                                                                                          \
  }

WAYWISER_C_TRANSFERS(, thread)
WAYWISER_C_TRANSFERS(_warp, warp)
WAYWISER_C_TRANSFERS(_block, block)

extern "C" __device__ int waywiser_rank(std::uint64_t terms) {
  return reinterpret_cast<const waywiser::one_sided::HeapTerms*>(terms)->rank;
}
extern "C" __device__ int waywiser_size(std::uint64_t terms) {
  return reinterpret_cast<const waywiser::one_sided::HeapTerms*>(terms)->size;
}
extern "C" __device__ int waywiser_signal_set(std::uint64_t terms, std::uint64_t signal, std::uint64_t value,
                                              int rank) {
  waywiser::one_sided::with_heap(
      terms, [&](const auto& ranks) { ranks.signal_set(ranks.template at<std::uint64_t>(signal), value, rank); });
  return 0;
}
extern "C" __device__ int waywiser_signal_add(std::uint64_t terms, std::uint64_t signal, std::uint64_t value,
                                              int rank) {
  waywiser::one_sided::with_heap(
      terms, [&](const auto& ranks) { ranks.signal_add(ranks.template at<std::uint64_t>(signal), value, rank); });
  return 0;
}
extern "C" __device__ int waywiser_test(std::uint64_t terms, std::uint64_t word, int comparison, std::uint64_t value) {
  using namespace waywiser::one_sided;
  return with_heap(terms, [&](const auto& ranks) {
    return ranks.test(ranks.template at<std::uint64_t>(word), static_cast<Comparison>(comparison), value) ? 1 : 0;
  });
}
extern "C" __device__ std::uint64_t waywiser_atomic_fetch_add(std::uint64_t terms, std::uint64_t word,
                                                              std::uint64_t value, int rank) {
  return waywiser::one_sided::with_heap(terms, [&](const auto& ranks) {
    return ranks.atomic_fetch_add(ranks.template at<std::uint64_t>(word), value, rank);
  });
}
extern "C" __device__ std::uint64_t waywiser_atomic_compare_swap(std::uint64_t terms, std::uint64_t word,
                                                                 std::uint64_t expected, std::uint64_t value,
                                                                 int rank) {
  return waywiser::one_sided::with_heap(terms, [&](const auto& ranks) {
    return ranks.atomic_compare_swap(ranks.template at<std::uint64_t>(word), expected, value, rank);
  });
}
extern "C" __device__ int waywiser_fence(std::uint64_t terms) {
  waywiser::one_sided::with_heap(terms, [](const auto& ranks) { ranks.fence(); });
  return 0;
}
extern "C" __device__ int waywiser_quiet(std::uint64_t terms) {
  waywiser::one_sided::with_heap(terms, [](const auto& ranks) { ranks.quiet(); });
  return 0;
}
extern "C" __device__ int waywiser_barrier_block(std::uint64_t terms, std::uint64_t team) {
  using namespace waywiser::one_sided;
  with_heap(terms, [&](const auto& ranks) {
    Team<CudaHeapBlock>(ranks, *reinterpret_cast<const TeamTerms*>(team)).barrier();
  });
  return 0;
}
