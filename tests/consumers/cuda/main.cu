// Ranks with arrays and streams of their own on a GPU; without one they say so.
#include <cstdio>
#include <span>
#include <vector>
#include <waywiser/heap/heap.hpp>
#include <waywiser/one_sided.cuh>
#include <waywiser/waywiser.hpp>

__global__ void fill(float* x, int n, float value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = value;
}

// Each rank puts its number into the next rank's memory, from inside the kernel.
__global__ void put_around(const __grid_constant__ waywiser::one_sided::HeapTerms terms) {
  using namespace waywiser::one_sided;
  CudaHeapBlock block;
  const OneSided<CudaHeapBlock> ranks(block, terms);
  int *number = ranks.at<int>(64), *there = ranks.at<int>(128);
  if (threadIdx.x == 0) *number = ranks.rank();
  ranks.put_with_signal<Scope::block>(there, number, 1, ranks.at<std::uint64_t>(0), 1, SignalOp::set,
                                      (ranks.rank() + 1) % ranks.size());
  ranks.wait_until<Scope::block>(ranks.at<std::uint64_t>(0), Comparison::eq, 1);
}

int main() try {
  waywiser::Group group = waywiser::Group::join();
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::printf("rank %d of %d: no GPU\n", group.rank(), group.size());
    group.close();
    return 0;
  }
  const int device = group.rank() % gpus;
  cudaSetDevice(device);
  constexpr int n = 100000;
  float* x = nullptr;
  cudaStream_t own = nullptr;
  cudaMalloc(&x, n * sizeof(float));
  cudaStreamCreate(&own);

  fill<<<(n + 255) / 256, 256, 0, own>>>(x, n, static_cast<float>(group.rank() + 1));
  const waywiser::Elements array(std::span(x, n), waywiser::gpu(device));
  const auto stream = waywiser::borrow_stream(group, waywiser::gpu(device), own);
  group.all_reduce(array, array, waywiser::ReduceOp::sum, waywiser::Mode::on(*stream));
  std::vector<float> host(n);
  cudaMemcpyAsync(host.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost, own);
  group.synchronize(*stream);
  std::printf("rank %d of %d: %g\n", group.rank(), group.size(), host[n - 1]);

  // Each rank puts its number into the next rank's memory.
  const int next = (group.rank() + 1) % group.size(), previous = (group.rank() + group.size() - 1) % group.size();
  fill<<<1, 1, 0, own>>>(x + 1, 1, static_cast<float>(group.rank()));
  cudaStreamSynchronize(own);
  const waywiser::Window window = group.expose(array.region);
  window.put(array.region.slice(sizeof(float), sizeof(float)), next, 0);
  group.barrier();
  cudaMemcpy(host.data(), x, sizeof(float), cudaMemcpyDeviceToHost);
  if (host[0] != static_cast<float>(previous)) {
    std::fprintf(stderr, "rank %d has %g of rank %d\n", group.rank(), host[0], previous);
    return 1;
  }

  {
    const waywiser::Heap heap(group, "numbers", waywiser::gpu(device), 4096);
    put_around<<<1, 32, 0, own>>>(heap.terms(*stream));
    heap.synchronize(*stream);
    int number = -1;
    cudaMemcpy(&number, heap.local().data + 128, sizeof number, cudaMemcpyDeviceToHost);
    if (number != previous) {
      std::fprintf(stderr, "rank %d has %d of rank %d in its heap\n", group.rank(), number, previous);
      return 1;
    }
    group.barrier();
  }
  group.close();
  cudaFree(x);
  return 0;
} catch (const waywiser::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
