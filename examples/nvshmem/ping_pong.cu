// Two PEs send an array to and fro in one kernel, each time with a signal, and check it.
//   waywiser run -n 2 build/examples/ping_pong
#include <waywiser/nvshmem.h>

#include "on_gpu.hpp"

constexpr int most = 1 << 18, rounds = 100;

// Odd turns go from PE 0 to PE 1, even ones back; whoever gets an array checks it. `given` and `taken` are symmetric.
__global__ void ping_pong(float* given, float* taken, std::uint64_t* signal, int count, int first_turn, int* wrong) {
  const int mine = nvshmem_my_pe(), other = 1 - mine;
  for (int turn = first_turn; turn < first_turn + 2 * rounds; ++turn) {
    const auto number = static_cast<std::uint64_t>(turn);
    if (turn % 2 == mine) {
      if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, number);
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
        if (taken[i] != static_cast<float>(turn + i % 1000)) atomicAdd(wrong, 1);
      __syncthreads();
    } else {
      for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
        given[i] = static_cast<float>(turn + i % 1000);
      nvshmemx_float_put_signal_nbi_block(taken, given, static_cast<std::size_t>(count), signal, number,
                                          NVSHMEM_SIGNAL_SET, other);
      nvshmem_quiet();  // `given` is written again
    }
  }
}

int main() {
  nvshmem_init();
  const int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
  if (!use_gpu(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE))) {
    std::printf("PE %d of %d: no GPU\n", mine, pes);
    nvshmem_finalize();
    return 0;
  }
  if (pes != 2) {
    if (mine == 0) std::fprintf(stderr, "ping_pong: 2 PEs are needed, not %d\n", pes);
    nvshmem_finalize();
    return 2;
  }
  auto* given = static_cast<float*>(nvshmem_malloc(most * sizeof(float)));
  auto* taken = static_cast<float*>(nvshmem_malloc(most * sizeof(float)));
  auto* signal = static_cast<std::uint64_t*>(nvshmem_calloc(1, sizeof(std::uint64_t)));
  int* wrong = nullptr;
  check(cudaMalloc(&wrong, sizeof(int)), "cudaMalloc");
  check(cudaMemset(wrong, 0, sizeof(int)), "cudaMemset");
  cudaEvent_t start = nullptr, end = nullptr;
  check(cudaEventCreate(&start), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");

  int turn = 1, all_wrong = 0;
  for (int count = 1; count <= most; count *= 64) {
    nvshmem_barrier_all();
    check(cudaEventRecord(start), "cudaEventRecord");
    ping_pong<<<1, 512>>>(given, taken, signal, count, turn, wrong);
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaDeviceSynchronize(), "ping_pong");
    turn += 2 * rounds;
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
    check(cudaMemcpy(&all_wrong, wrong, sizeof all_wrong, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (mine == 0)
      std::printf("%d bytes: %.2f us one way with filling and checking, %d wrong\n",
                  count * static_cast<int>(sizeof(float)), milliseconds * 1000 / (2 * rounds), all_wrong);
  }
  std::printf("PE %d of %d: %s\n", mine, pes, all_wrong == 0 ? "right" : "wrong");
  nvshmem_free(signal);
  nvshmem_free(taken);
  nvshmem_free(given);
  nvshmem_finalize();
  return all_wrong == 0 ? 0 : 1;
}
