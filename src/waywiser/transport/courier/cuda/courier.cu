#include "waywiser/device/cuda/check.hpp"
#include "waywiser/transport/courier/courier_body.hpp"
#include "waywiser/transport/courier/courier_kernel.hpp"

namespace waywiser {
namespace {

// 32 lanes in lock step. Volatile accesses: the data changes under a kernel that never ends, so no cache may answer.
class CudaWarp {
 public:
  static constexpr unsigned lanes = 32;

  __device__ unsigned lane() const { return threadIdx.x % lanes; }
  __device__ unsigned index() const { return threadIdx.x / lanes; }
  __device__ unsigned count() const { return blockDim.x / lanes; }
  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned blocks() const { return gridDim.x; }
  __device__ std::uint32_t broadcast(std::uint32_t value) const { return __shfl_sync(0xffffffffu, value, 0); }
  __device__ bool all(bool value) const { return __all_sync(0xffffffffu, value) != 0; }
  __device__ std::uint32_t add(std::uint32_t* word, std::uint32_t value) const { return atomicAdd(word, value); }
  __device__ bool exchange(std::uint32_t* word, std::uint32_t expected, std::uint32_t value) const {
    return atomicCAS(word, expected, value) == expected;
  }
  template <typename Word>
  __device__ Word load(const Word* from) const {
    return *static_cast<const volatile Word*>(from);
  }
  __device__ std::byte load(const std::byte* from) const {
    return static_cast<std::byte>(*reinterpret_cast<const volatile unsigned char*>(from));
  }
  __device__ Packet load(const Packet* from) const {
    Packet packet;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(packet.words[0]), "=r"(packet.words[1]), "=r"(packet.words[2]), "=r"(packet.number)
                 : "l"(from)
                 : "memory");
    return packet;
  }
  template <typename Word>
  __device__ void store(Word* to, Word value) const {
    *static_cast<volatile Word*>(to) = value;
  }
  __device__ void store(std::byte* to, std::byte value) const {
    *reinterpret_cast<volatile unsigned char*>(to) = static_cast<unsigned char>(value);
  }
  __device__ void store(Packet* to, Packet packet) const {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(to), "r"(packet.words[0]), "r"(packet.words[1]),
                 "r"(packet.words[2]), "r"(packet.number)
                 : "memory");
  }

  __device__ void fence_to_block() const { __threadfence_block(); }
  __device__ void fence() const { __threadfence(); }
  __device__ void fence_to_host() const { __threadfence_system(); }
  __device__ void join() const { __syncwarp(); }
  __device__ void pause() const {}
  __device__ std::uint32_t ticks() const { return static_cast<std::uint32_t>(clock64()); }
  __device__ std::uint32_t ticks(unsigned ns) const {
    constexpr unsigned cycles_per_ns = 2;
    return cycles_per_ns * ns;
  }
  __device__ std::uint64_t nanoseconds() const {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
};

__global__ void __launch_bounds__(most_pollers* CudaWarp::lanes) courier(CourierTerms terms) {
  __shared__ CourierShared shared;
  const CudaWarp warp;
  if (threadIdx.x == 0) CourierBody<CudaWarp>::prepare(warp, shared, terms);
  __syncthreads();
  CourierBody<CudaWarp>(warp, shared, terms).run();
}

}  // namespace

std::function<void(void*)> cuda_courier_launcher(const CourierTerms& terms, CourierShape shape) {
  return [=](void* stream) {
    courier<<<shape.lanes, shape.pollers * CudaWarp::lanes, 0, static_cast<cudaStream_t>(stream)>>>(terms);
    check_cuda(cudaGetLastError(), "launch of the courier kernel");
  };
}

}  // namespace waywiser
