#pragma once

#include <cstdint>
#include <waywiser/group/group.hpp>
#include <waywiser/heap/heap.hpp>

#include "apps/parallel.hpp"
#if defined(__CUDACC__)
#include <waywiser/one_sided.cuh>
#else
#include <waywiser/base/error.hpp>
#include <waywiser/heap/device/host_heap_block.hpp>
#include <waywiser/heap/device/one_sided.hpp>
#endif

namespace apps {

constexpr unsigned fused_threads = 256;  // of a block on a GPU

// The one-sided calls of a fused step in a heap that stores reach at all ranks.
template <typename Gpu>
class HeapCalls : public waywiser::one_sided::OneSided<Gpu> {
 public:
  using waywiser::one_sided::OneSided<Gpu>::OneSided;

  // Waits until the word of this rank is at least `value`. `from`: who adds to it.
  WAYWISER_DEVICE void hear(const std::uint64_t* word, std::uint64_t value, int from) const {
    this->wait_until(word, waywiser::one_sided::Comparison::ge, value, from);
  }
  // Adds 1 to a rank's word, behind what the threads of the block have stored before they joined.
  WAYWISER_DEVICE void tell(std::uint64_t* word, int rank) const {
    this->gpu().release_add(this->place(word, 1, rank), 1);
  }
};

#if defined(__CUDACC__)
template <typename Step>
__global__ void __launch_bounds__(fused_threads, Step::blocks_at_once)
    fused_kernel(const __grid_constant__ waywiser::one_sided::HeapTerms terms, const __grid_constant__ Step step) {
  waywiser::one_sided::CudaHeapBlock block;
  step(HeapCalls<waywiser::one_sided::CudaHeapBlock>(block, terms));
}
#endif

// Memory of zeros at each rank, which kernels of the others reach, and what fused steps have done there: a heap.
class FusedHeap {
 public:
  // Collective. Throws unavailable at all ranks where stores do not reach a rank.
  FusedHeap(waywiser::Group& group, Processor& processor, waywiser::Bytes bytes)
      : processor_(processor), heap_(group, "fused", processor.place(), bytes), terms_(heap_terms()) {
    for (int rank = 0; rank < group.size(); ++rank) static_cast<void>(heap_.peer(rank));
  }

  std::uint64_t turn = 0, filled = 0;  // of the next step; the array that the last one wrote

  // As kernels of this rank reach it.
  std::byte* local() const { return terms_.ranks[terms_.rank]; }
  // step(ranks) in each block, behind all loops so far.
  template <typename Step>
  void launch(unsigned blocks, unsigned threads, const Step& step) {
#if defined(__CUDACC__)
    fused_kernel<<<blocks, threads, 0, processor_.native()>>>(terms_, step);
    apps::check(cudaGetLastError(), "a fused step");
#else
    const auto body = [step, terms = terms_, blocks, threads] {
      for (unsigned i = 0; i < blocks; ++i) {
        waywiser::one_sided::HostHeapBlock block(i, blocks, threads);
        step(HeapCalls<waywiser::one_sided::HostHeapBlock>(block, terms));
      }
    };
#if defined(APPS_VIRTUAL_GPUS)
    processor_.stream().launch({1, 1, [body](const waywiser::ThreadContext&) { body(); }, {}});
#else
    try {
      body();
    } catch (const waywiser::Trap&) {
      heap_.check();
    }
#endif
#endif
  }
  // Throw if a wait has not ended in time; check() does not wait for the steps.
  void check() { heap_.check(); }
  void wait() {
#if defined(__CUDACC__) || defined(APPS_VIRTUAL_GPUS)
    heap_.synchronize(processor_.stream());
#else
    check();
#endif
  }

 private:
  waywiser::one_sided::HeapTerms heap_terms() const {
#if defined(__CUDACC__) || defined(APPS_VIRTUAL_GPUS)
    return heap_.terms(processor_.stream());
#else
    return heap_.terms();
#endif
  }

  Processor& processor_;
  waywiser::Heap heap_;
  waywiser::one_sided::HeapTerms terms_;
};

}  // namespace apps
