// Each PE puts its number into the next one's memory, first by a kernel and a barrier on the stream, then by a kernel
// with a barrier in it.
//   waywiser run -n 2 build/examples/ring_shift
#include <waywiser/nvshmem.h>

#include "on_gpu.hpp"

__global__ void shift(int* to) {
  const int mine = nvshmem_my_pe();
  nvshmem_int_p(to, mine, (mine + 1) % nvshmem_n_pes());
}

__global__ void shift_back(int* numbers) {
  const int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
  nvshmem_int_p(numbers + 1, numbers[0], (mine + pes - 1) % pes);
  nvshmem_barrier_all();
  numbers[2] = numbers[1];
}

int main() {
  nvshmem_init();
  const int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
  if (!use_gpu(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE))) {
    std::printf("PE %d of %d: no GPU\n", mine, pes);
    nvshmem_finalize();
    return 0;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  auto* numbers = static_cast<int*>(nvshmem_calloc(3, sizeof(int)));
  if (numbers == nullptr) nvshmem_global_exit(1);

  shift<<<1, 1, 0, stream>>>(numbers);
  nvshmemx_barrier_all_on_stream(stream);
  void* arguments[] = {&numbers};
  const auto* kernel = reinterpret_cast<const void*>(shift_back);
  if (nvshmemx_collective_launch(kernel, dim3(1), dim3(1), arguments, 0, stream) != NVSHMEMX_SUCCESS)
    nvshmem_global_exit(1);
  int found[3] = {-1, -1, -1};
  check(cudaMemcpyAsync(found, numbers, sizeof found, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");

  const bool right = found[0] == (mine + pes - 1) % pes && found[1] == mine && found[2] == mine;
  std::printf("PE %d of %d: %d from the left, its own %d from the right: %s\n", mine, pes, found[0], found[2],
              right ? "right" : "wrong");
  nvshmem_free(numbers);
  nvshmem_finalize();
  return right ? 0 : 1;
}
