#pragma once

#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdint>
#include <span>
#include <string>
#include <waywiser/base/error.hpp>
#include <waywiser/group/group.hpp>
#include <waywiser/one_sided.cuh>

#include "apps/fused_heap.hpp"
#include "apps/nvshmem_start.cuh"
#include "apps/parallel.hpp"

namespace apps {

// As HeapCalls, in NVSHMEM's names: cells go by stores to where nvshmem_ptr says.
class NvshmemCalls {
 public:
  using Gpu = waywiser::one_sided::CudaHeapBlock;

  __device__ NvshmemCalls(const Gpu& gpu, std::byte* local) : gpu_(gpu), local_(local) {}

  __device__ const Gpu& gpu() const { return gpu_; }
  template <typename T>
  __device__ T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(local_ + offset);
  }
  template <typename T>
  __device__ T* pointer(T* local, int rank) const {
    return static_cast<T*>(nvshmem_ptr(local, rank));
  }
  __device__ void hear(std::uint64_t* word, std::uint64_t value, int /*from*/) const {
    nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, value);
    gpu_.fence();  // what this multiprocessor has cached of the ghosts is of the time before
  }
  __device__ void tell(std::uint64_t* word, int rank) const {
    nvshmem_fence();
    nvshmemx_signal_op(word, 1, NVSHMEM_SIGNAL_ADD, rank);
  }

 private:
  const Gpu& gpu_;
  std::byte* local_;
};

template <typename Step>
__global__ void __launch_bounds__(fused_threads, Step::blocks_at_once)
    fused_nvshmem_kernel(std::byte* local, const __grid_constant__ Step step) {
  waywiser::one_sided::CudaHeapBlock block;
  step(NvshmemCalls(block, local));
}

// As FusedHeap, in NVSHMEM's symmetric memory. It stays until the process ends: a release would wait for all ranks.
class NvshmemMemory {
 public:
  // Collective. Throws unavailable at all ranks.
  NvshmemMemory(waywiser::Group& group, Processor& processor, waywiser::Bytes bytes) : processor_(processor) {
    agree(group, start_nvshmem(group));
    processor.end_waits_after(60);
    local_ = static_cast<std::byte*>(nvshmem_calloc(bytes, 1));
    std::string why = local_ == nullptr ? "NVSHMEM does not have " + std::to_string(bytes) + " bytes" : "";
    for (int rank = 0; rank < group.size() && why.empty(); ++rank)
      if (nvshmem_ptr(local_, rank) == nullptr) why = "NVSHMEM's stores do not reach rank " + std::to_string(rank);
    agree(group, why);
  }

  std::uint64_t turn = 0, filled = 0;

  std::byte* local() const { return local_; }
  template <typename Step>
  void launch(unsigned blocks, unsigned threads, const Step& step) {
    fused_nvshmem_kernel<<<blocks, threads, 0, processor_.native()>>>(local_, step);
    apps::check(cudaGetLastError(), "a fused step of NVSHMEM");
  }
  void check() {}
  void wait() { processor_.wait(); }

 private:
  static void agree(waywiser::Group& group, const std::string& why) {
    std::int32_t lacks = why.empty() ? 0 : 1;
    group.all_reduce(std::span(&lacks, 1), std::span(&lacks, 1), waywiser::ReduceOp::max);
    if (lacks != 0)
      throw waywiser::Error(waywiser::ErrorKind::unavailable, why.empty() ? "another rank has no NVSHMEM" : why);
  }

  Processor& processor_;
  std::byte* local_ = nullptr;
};

}  // namespace apps
