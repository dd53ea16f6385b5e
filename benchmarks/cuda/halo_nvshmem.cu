#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include <algorithm>
#include <utility>

#include "apps/nvshmem_start.cuh"
#include "benchmarks/cuda/halo_nvshmem.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

constexpr int threads = 512, most_faces = 2;

struct Face {
  Rows give, there, take;
  std::int64_t packed;  // its place in a buffer
};
struct FacesTerms {
  Face faces[most_faces];
  float *array, *in, *out;
  std::int64_t packed;
  std::uint64_t *signals, *turns, *free;
  bool asks;
  int other;
};

__host__ __device__ std::int64_t values(const Rows& rows) { return rows.run * rows.rows; }
// Of a face in a buffer, which begins at a multiple of 128 bytes.
std::int64_t packed_values(const NvshmemFace& face) {
  return (std::max(values(face.give), values(face.take)) + 31) / 32 * 32;
}
__device__ std::int64_t begin_of(std::int64_t count, unsigned block) {
  return block == gridDim.x ? count : count / 32 * block / gridDim.x * 32;
}
// f(a value's place in an array, in a buffer)
template <typename Function>
__device__ void each_value(const Rows& rows, Function f) {
  const auto run = static_cast<int>(rows.run), pitch = static_cast<int>(rows.pitch);
  const auto first = static_cast<int>(rows.first), end = static_cast<int>(begin_of(values(rows), blockIdx.x + 1));
  for (int i = static_cast<int>(begin_of(values(rows), blockIdx.x) + threadIdx.x); i < end; i += threads) {
    const int row = run == 1 ? i : i / run;
    f(first + row * pitch + (i - row * run), i);
  }
}

// A block for each part of each face.
__global__ void __launch_bounds__(threads) exchange_faces(const __grid_constant__ FacesTerms all) {
  const Face& face = all.faces[blockIdx.y];
  const unsigned part = blockIdx.y * NvshmemFaces::most_blocks + blockIdx.x;
  const std::uint64_t turn = all.turns[part] + 1;
  __syncthreads();
  if (threadIdx.x == 0) all.turns[part] = turn;
  // Two buffers take turns: whoever is in turn n + 1 has unpacked turn n - 1.
  const std::int64_t buffer = static_cast<std::int64_t>(turn % 2) * all.packed + face.packed;
  const std::int64_t count = values(face.give), begin = begin_of(count, blockIdx.x),
                     end = begin_of(count, blockIdx.x + 1);
  const bool straight = face.give.rows == 1 && face.there.rows == 1;
  const float* from = straight ? all.array + face.give.first : all.out + buffer;
  float* to = straight ? all.array + face.there.first : all.in + buffer;
  if (!straight) {
    each_value(face.give, [&](int at, int packed) { all.out[buffer + packed] = all.array[at]; });
    __syncthreads();
  } else if (all.asks) {
    if (threadIdx.x == 0) {
      nvshmemx_signal_op(all.free + part, turn, NVSHMEM_SIGNAL_SET, all.other);
      nvshmem_signal_wait_until(all.free + part, NVSHMEM_CMP_GE, turn);
    }
    __syncthreads();
  }
  nvshmemx_putmem_signal_block(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(float),
                               all.signals + part, turn, NVSHMEM_SIGNAL_SET, all.other);
  if (threadIdx.x == 0) nvshmem_signal_wait_until(all.signals + part, NVSHMEM_CMP_GE, turn);
  if (straight) return;
  __syncthreads();
  each_value(face.take, [&](int at, int packed) { all.array[at] = all.in[buffer + packed]; });
}

template <typename T>
T* symmetric(std::int64_t count) {
  auto* made = static_cast<T*>(nvshmem_calloc(static_cast<std::size_t>(std::max<std::int64_t>(count, 16)), sizeof(T)));
  if (made == nullptr)
    throw Error(ErrorKind::unavailable,
                "NVSHMEM does not have " + std::to_string(static_cast<std::size_t>(count) * sizeof(T)) + " bytes");
  return made;
}

}  // namespace

std::string start_nvshmem(Group& group) { return apps::start_nvshmem(group); }

NvshmemFaces::NvshmemFaces(std::int64_t values, std::vector<NvshmemFace> faces, int other)
    : faces_(std::move(faces)), other_(other) {
  if (faces_.size() > most_faces) throw Error(ErrorKind::unavailable, "more faces than this kernel has");
  for (const NvshmemFace& face : faces_) packed_ += packed_values(face);
  array_ = symmetric<float>(values);
  in_ = symmetric<float>(2 * packed_);
  out_ = symmetric<float>(2 * packed_);
  signals_ = symmetric<std::uint64_t>(most_faces * most_blocks);
  turns_ = symmetric<std::uint64_t>(most_faces * most_blocks);
  free_ = symmetric<std::uint64_t>(most_faces * most_blocks);
  if (nvshmem_ptr(array_, other_) == nullptr)
    throw Error(ErrorKind::unavailable, "NVSHMEM's stores do not reach the other rank");
}

bool NvshmemFaces::are_straight() const {
  return std::ranges::all_of(faces_,
                             [](const NvshmemFace& face) { return face.give.rows == 1 && face.there.rows == 1; });
}

void NvshmemFaces::once(void* cuda_stream, int blocks, bool asks) {
  FacesTerms all{{}, array_, in_, out_, packed_, signals_, turns_, free_, asks, other_};
  std::int64_t packed = 0;
  for (std::size_t i = 0; i < faces_.size(); ++i) {
    const NvshmemFace& face = faces_[i];
    all.faces[i] = {face.give, face.there, face.take, packed};
    packed += packed_values(face);
  }
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(faces_.size()));
  exchange_faces<<<grid, threads, 0, static_cast<cudaStream_t>(cuda_stream)>>>(all);
  check_cuda(cudaGetLastError(), "a kernel of NVSHMEM");
}

void NvshmemFaces::release() {
  for (void* each : {static_cast<void*>(free_), static_cast<void*>(turns_), static_cast<void*>(signals_),
                     static_cast<void*>(out_), static_cast<void*>(in_), static_cast<void*>(array_)})
    nvshmem_free(each);
}

}  // namespace waywiser
