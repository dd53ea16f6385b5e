#pragma once

// Blocks of threads that communicate by themselves, in one source for hosts and GPUs.
#include <chrono>
#include <vector>
#include <waywiser/heap/heap.hpp>

#include "apps/parallel.hpp"
#if defined(__CUDACC__)
#include <waywiser/one_sided.cuh>
#else
#include <waywiser/heap/device/host_heap_block.hpp>
#include <waywiser/heap/device/one_sided.hpp>
#endif

namespace apps {

namespace one_sided = waywiser::one_sided;

#if defined(__CUDACC__)

constexpr unsigned most_communicating_threads = 512;

template <typename Body>
__global__ void __launch_bounds__(most_communicating_threads) communicating_blocks(const __grid_constant__ Body body) {
  one_sided::CudaHeapBlock gpu;
  body(gpu);
}

// All of them must run at the same time: no more than a GPU has multiprocessors.
inline unsigned communicating_block_count() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "the multiprocessors");
  return static_cast<unsigned>(count);
}

inline one_sided::HeapTerms terms_on(const waywiser::Heap& heap, Processor& processor) {
  return heap.terms(processor.stream());
}

// body(gpu) by all threads of all blocks, behind all loops so far.
template <typename Body>
void run_blocks(const waywiser::Heap& /*heap*/, Processor& processor, unsigned blocks, const Body& body) {
  communicating_blocks<<<blocks, most_communicating_threads, 0, processor.native()>>>(body);
  check(cudaGetLastError(), "a kernel that communicates");
}
inline void wait_for_blocks(const waywiser::Heap& heap, Processor& processor) { heap.synchronize(processor.stream()); }

#else

constexpr unsigned threads_of_block = 32;  // of one warp

inline unsigned communicating_block_count() { return 1; }

#if defined(APPS_VIRTUAL_GPUS)

inline one_sided::HeapTerms terms_on(const waywiser::Heap& heap, Processor& processor) {
  return heap.terms(processor.stream());
}
template <typename Body>
void run_blocks(const waywiser::Heap& /*heap*/, Processor& processor, unsigned /*blocks*/, const Body& body) {
  processor.stream().launch({1,
                             1,
                             [body](const waywiser::ThreadContext&) {
                               one_sided::HostHeapBlock gpu(0, 1, threads_of_block);
                               body(gpu);
                             },
                             {}});
}
inline void wait_for_blocks(const waywiser::Heap& heap, Processor& processor) { heap.synchronize(processor.stream()); }

#else

inline one_sided::HeapTerms terms_on(const waywiser::Heap& heap, Processor& /*processor*/) { return heap.terms(); }
template <typename Body>
void run_blocks(const waywiser::Heap& heap, Processor& /*processor*/, unsigned /*blocks*/, const Body& body) {
  one_sided::HostHeapBlock gpu(0, 1, threads_of_block);
  try {
    body(gpu);
  } catch (const waywiser::Trap&) {  // the heap says why
    heap.check();
  }
}
inline void wait_for_blocks(const waywiser::Heap& heap, Processor& /*processor*/) { heap.check(); }

#endif
#endif

// Points in the order of a processor's work, and the time between them: on a GPU by events.
class Marks {
 public:
  explicit Marks(Processor& processor) : processor_(processor) {}
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;
#if defined(__CUDACC__)
  ~Marks() {
    for (cudaEvent_t each : all_) cudaEventDestroy(each);
  }
  void set() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    all_.push_back(event);
    check(cudaEventRecord(event, processor_.native()), "cudaEventRecord");
  }
  // From mark i to the next one; all work is over.
  double seconds(std::size_t i) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, all_[i], all_[i + 1]), "cudaEventElapsedTime");
    return milliseconds / 1e3;
  }

 private:
  std::vector<cudaEvent_t> all_;
#else
  void set() {
    processor_.wait();
    all_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
  double seconds(std::size_t i) const { return all_[i + 1] - all_[i]; }

 private:
  std::vector<double> all_;
#endif
  Processor& processor_;
};

}  // namespace apps
