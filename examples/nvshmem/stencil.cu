// Heat on a ring that is cut into one part for each PE: each step puts the border cells into the neighbours' ghosts,
// and every tenth step sums the heat of all PEs on the stream. At the end the parts are exchanged and compared with the
// serial program.
//   waywiser run -n 2 build/examples/stencil
#include <waywiser/nvshmem.h>

#include <cmath>
#include <vector>

#include "on_gpu.hpp"

constexpr int cells = 4096, steps = 50;  // of each PE

__global__ void step(const double* now, double* next) {
  for (int i = 1 + static_cast<int>(threadIdx.x); i <= cells; i += static_cast<int>(blockDim.x))
    next[i] = 0.25 * now[i - 1] + 0.5 * now[i] + 0.25 * now[i + 1];
  __syncthreads();
  const int mine = nvshmem_my_pe(), pes = nvshmem_n_pes();
  if (threadIdx.x == 0) {
    nvshmem_double_p(next, next[cells], (mine + 1) % pes);
    nvshmem_double_put_nbi(next + cells + 1, next + 1, 1, (mine + pes - 1) % pes);
    nvshmem_quiet();
  }
}

__global__ void sum_of_part(const double* now, double* heat) {
  if (threadIdx.x != 0) return;
  *heat = 0;
  for (int i = 1; i <= cells; ++i) *heat += now[i];
}

// A block of each PE gets the parts of all.
__global__ void gather(double* all, const double* now) {
  nvshmemx_double_fcollect_block(NVSHMEM_TEAM_WORLD, all, now + 1, cells);
}

static std::vector<double> at_first(int pes) {
  std::vector<double> ring(static_cast<std::size_t>(pes) * cells);
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<double>(i * i % 1009);
  return ring;
}

static std::vector<double> serial(int pes) {
  std::vector<double> now = at_first(pes), next(now.size());
  for (int turn = 0; turn < steps; ++turn) {
    for (std::size_t i = 0; i < now.size(); ++i)
      next[i] = 0.25 * now[(i + now.size() - 1) % now.size()] + 0.5 * now[i] + 0.25 * now[(i + 1) % now.size()];
    now.swap(next);
  }
  return now;
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
  constexpr std::size_t bytes = (cells + 2) * sizeof(double);
  double* rows[2] = {static_cast<double*>(nvshmem_malloc(bytes)), static_cast<double*>(nvshmem_malloc(bytes))};
  auto* heat = static_cast<double*>(nvshmem_malloc(2 * sizeof(double)));
  auto* all = static_cast<double*>(nvshmem_malloc(static_cast<std::size_t>(pes) * cells * sizeof(double)));
  if (rows[0] == nullptr || rows[1] == nullptr || heat == nullptr || all == nullptr) nvshmem_global_exit(1);

  const std::vector<double> first = at_first(pes), wanted = serial(pes);
  std::vector<double> row(cells + 2);
  double heat_at_first = 0;
  for (const double each : first) heat_at_first += each;
  for (std::size_t i = 0; i < cells + 2; ++i)
    row[i] = first[(static_cast<std::size_t>(mine) * cells + i + first.size() - 1) % first.size()];
  check(cudaMemcpyAsync(rows[0], row.data(), bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
  nvshmemx_barrier_all_on_stream(stream);

  bool right = true;
  for (int turn = 0; turn < steps; ++turn) {
    step<<<1, 512, 0, stream>>>(rows[turn % 2], rows[1 - turn % 2]);
    nvshmemx_barrier_all_on_stream(stream);
    if (turn % 10 != 9) continue;
    sum_of_part<<<1, 32, 0, stream>>>(rows[1 - turn % 2], heat);
    nvshmemx_double_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, heat + 1, heat, 1, stream);
    double sum = 0;
    check(cudaMemcpyAsync(&sum, heat + 1, sizeof sum, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    right = right && std::fabs(sum - heat_at_first) < 1e-9 * heat_at_first;
  }
  gather<<<1, 512, 0, stream>>>(all, rows[steps % 2]);
  std::vector<double> found(wanted.size());
  check(cudaMemcpyAsync(found.data(), all, found.size() * sizeof(double), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < found.size(); ++i) right = right && std::fabs(found[i] - wanted[i]) < 1e-9;
  std::printf("PE %d of %d: %d steps, %s the serial program\n", mine, pes, steps, right ? "as" : "unlike");
  nvshmem_free(all);
  nvshmem_free(heat);
  nvshmem_free(rows[1]);
  nvshmem_free(rows[0]);
  nvshmem_finalize();
  return right ? 0 : 1;
}
