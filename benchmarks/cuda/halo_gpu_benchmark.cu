#include <cuda_runtime.h>

#include "benchmarks/cuda/halo_rows.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

constexpr int threads = 256;

template <bool packs>
__global__ void move_rows(float* array, int first, int run, int pitch, int count, float* packed) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  const int row = run == 1 ? i : i / run, at = first + row * pitch + (i - row * run);
  if (packs)
    packed[i] = array[at];
  else
    array[at] = packed[i];
}

template <bool packs>
void launch(void* stream, float* array, const Rows& rows, float* packed) {
  const auto count = static_cast<int>(rows.run * rows.rows);
  move_rows<packs>
      <<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, static_cast<cudaStream_t>(stream)>>>(
          array, static_cast<int>(rows.first), static_cast<int>(rows.run), static_cast<int>(rows.pitch), count, packed);
  check_cuda(cudaGetLastError(), "a kernel that packs");
}

}  // namespace

void pack_rows(void* cuda_stream, const float* array, const Rows& rows, float* packed) {
  launch<true>(cuda_stream, const_cast<float*>(array), rows, packed);
}
void unpack_rows(void* cuda_stream, float* array, const Rows& rows, const float* packed) {
  launch<false>(cuda_stream, array, rows, const_cast<float*>(packed));
}

}  // namespace waywiser
