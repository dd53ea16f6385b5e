// The exchange of 12_languages.py in C++; it prints the same digest of the bytes that have come.
//   waywiser run -n 2 build/examples/12_languages_cuda
#include <cstdio>
#include <vector>

#include "12_exchange.cuh"
#include "waywiser/base/error.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/waywiser.hpp"

using namespace waywiser;

static std::uint64_t digest(const std::vector<unsigned char>& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const unsigned char each : bytes) hash = (hash ^ each) * 0x100000001b3u;
  return hash;
}

static void check(cudaError_t error) {
  if (error != cudaSuccess) throw Error(ErrorKind::device, cudaGetErrorString(error));
}

int main() {
  try {
    Group group = Group::join();
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
      std::printf("rank %d of %d: no GPU\n", group.rank(), group.size());
      group.close();
      return 0;
    }
    const int device = group.rank() % gpus;
    check(cudaSetDevice(device));
    {
      Heap heap(group, "languages", gpu(device), 1 << 16);
      const HeapTeam team = heap.world();
      cudaStream_t own = nullptr;
      check(cudaStreamCreate(&own));
      const auto stream = borrow_stream(group, gpu(device), own);
      exchange<<<1, 256, 0, own>>>(heap.terms(*stream), team.terms());
      check(cudaGetLastError());
      heap.synchronize(*stream);
      std::vector<unsigned char> bytes(exchange_count * sizeof(float));
      check(cudaMemcpy(bytes.data(), heap.local().data + exchange_taken, bytes.size(), cudaMemcpyDeviceToHost));
      std::printf("rank %d of %d: %016llx\n", group.rank(), group.size(),
                  static_cast<unsigned long long>(digest(bytes)));
      group.barrier();
    }
    group.close();
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "12_languages_cuda: %s\n", error.what());
    return 2;
  }
}
