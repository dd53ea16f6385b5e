#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"
#include "waywiser/kernels/pattern_body.hpp"

namespace waywiser {
namespace {

__global__ void fill_kernel(std::byte* data, Bytes bytes, std::uint64_t seed) {
  fill_body(ThreadContext{blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, data, bytes, seed);
}

__global__ void count_kernel(const std::byte* data, Bytes bytes, std::uint64_t seed, std::uint64_t* count) {
  const Bytes wrong = count_body(ThreadContext{blockIdx.x, gridDim.x, threadIdx.x, blockDim.x}, data, bytes, seed);
  if (wrong != 0) atomicAdd(reinterpret_cast<unsigned long long*>(count), static_cast<unsigned long long>(wrong));
}

}  // namespace

CudaLauncher cuda_fill_launcher(std::byte* data, Bytes bytes, std::uint64_t seed, unsigned blocks, unsigned threads) {
  return [=](void* stream) {
    fill_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(data, bytes, seed);
    check_cuda(cudaGetLastError(), "launch of the fill kernel");
  };
}

CudaLauncher cuda_clear_launcher(std::byte* data, Bytes bytes) {
  return [=](void* stream) {
    check_cuda(cudaMemsetAsync(data, 0, bytes, static_cast<cudaStream_t>(stream)), "cudaMemsetAsync");
  };
}

CudaLauncher cuda_count_launcher(const std::byte* data, Bytes bytes, std::uint64_t seed, std::uint64_t* count,
                                 unsigned blocks, unsigned threads) {
  return [=](void* stream) {
    count_kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(data, bytes, seed, count);
    check_cuda(cudaGetLastError(), "launch of the count kernel");
  };
}

std::uint64_t* cuda_new_counter(void* stream) {
  void* counter = nullptr;
  const auto native = static_cast<cudaStream_t>(stream);
  check_cuda(cudaMallocAsync(&counter, sizeof(std::uint64_t), native), "cudaMallocAsync of a counter");
  check_cuda(cudaMemsetAsync(counter, 0, sizeof(std::uint64_t), native), "cudaMemsetAsync of a counter");
  return static_cast<std::uint64_t*>(counter);
}

std::uint64_t cuda_read_counter(void* stream, std::uint64_t* counter) {
  const auto native = static_cast<cudaStream_t>(stream);
  int device = 0;
  check_cuda(cudaStreamGetDevice(native, &device), "cudaStreamGetDevice");
  const CurrentDevice current(device);  // the counter belongs to this GPU's memory pool
  std::uint64_t count = 0;
  check_cuda(cudaMemcpyAsync(&count, counter, sizeof count, cudaMemcpyDeviceToHost, native), "reading a counter");
  check_cuda(cudaStreamSynchronize(native), "reading a counter");
  check_cuda(cudaFreeAsync(counter, native), "cudaFreeAsync of a counter");
  return count;
}

}  // namespace waywiser
