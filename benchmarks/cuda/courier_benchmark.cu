#include "benchmarks/cuda/full_gpu.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

constexpr int threads = 1024;

__global__ void __launch_bounds__(threads) stay(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

}  // namespace

void run_on_full_gpu(unsigned long long nanoseconds) {
  int device = 0, multiprocessors = 0, blocks = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
             "cudaDeviceGetAttribute");
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stay, threads, 0), "cudaOccupancy");
  stay<<<multiprocessors * blocks, threads>>>(nanoseconds);
  check_cuda(cudaGetLastError(), "a kernel that fills the GPU");
}

}  // namespace waywiser
