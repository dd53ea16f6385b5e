#pragma once

#include "waywiser/heap/device/terms.hpp"

namespace waywiser::one_sided {

// Bulk asynchronous copies through shared memory, of GPUs from compute capability 9.0 on; older ones have none. The
// twin of HostBulk. A barrier of each stage tells when its load is over.
class CudaBulk {
 public:
  CudaBulk() = default;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __device__ CudaBulk(std::byte* memory, unsigned bytes)
      : memory_(static_cast<std::uint32_t>(__cvta_generic_to_shared(memory))), piece_(bulk_piece_of(bytes)) {}
#else
  __device__ CudaBulk(std::byte*, unsigned) {}
#endif

  __device__ unsigned piece() const { return piece_; }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  // What this thread has written before is seen by bulk copies that come after a join.
  __device__ static void order() { asm volatile("fence.proxy.async;" ::: "memory"); }
  __device__ void begin() const {
    for (unsigned i = 0; i < bulk_stages; ++i)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(i)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __device__ void load(unsigned stage, const std::byte* from, unsigned bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier(stage)), "r"(bytes) : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(stage)),
        "l"(from), "r"(bytes), "r"(barrier(stage))
        : "memory");
  }
  __device__ void wait_loaded(unsigned stage, unsigned turn) const {
    unsigned loaded = 0;
    while (loaded == 0)
      asm volatile(
          "{\n.reg .pred is;\nmbarrier.try_wait.parity.shared::cta.b64 is, [%1], %2;\nselp.u32 %0, 1, 0, is;\n}"
          : "=r"(loaded)
          : "r"(barrier(stage)), "r"(turn % 2)
          : "memory");
  }
  __device__ void store(unsigned stage, std::byte* to, unsigned bytes) const {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(at(stage)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
  __device__ void wait_read_but_newest() const { asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); }
  __device__ void wait_stored() const {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    order();
  }
  __device__ void end() const {
    for (unsigned i = 0; i < bulk_stages; ++i)
      asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier(i)) : "memory");
  }
#else
  __device__ static void order() {}
  __device__ void begin() const {}
  __device__ void load(unsigned, const std::byte*, unsigned) const {}
  __device__ void wait_loaded(unsigned, unsigned) const {}
  __device__ void store(unsigned, std::byte*, unsigned) const {}
  __device__ void wait_read_but_newest() const {}
  __device__ void wait_stored() const {}
  __device__ void end() const {}
#endif

 private:
  __device__ std::uint32_t barrier(unsigned stage) const { return memory_ + stage * 8; }
  __device__ std::uint32_t at(unsigned stage) const { return memory_ + bulk_barriers + stage * piece_; }

  std::uint32_t memory_ = 0;  // in shared memory
  unsigned piece_ = 0;        // bytes of a stage; 0: there is none
};

}  // namespace waywiser::one_sided
