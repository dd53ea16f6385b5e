#pragma once

// Each rank puts its numbers into the memory of the next one and waits for those of the one before, in one kernel: this
// source is compiled by nvcc for 12_languages_cuda.cu, and by NVRTC for CuPy in 12_languages.py.
#include <waywiser/one_sided.cuh>

constexpr unsigned exchange_count = 1024;
constexpr unsigned exchange_signal = 0, exchange_given = 64, exchange_taken = 8192;  // offsets, in bytes

extern "C" __global__ void exchange(const __grid_constant__ waywiser::one_sided::HeapTerms terms,
                                    const __grid_constant__ waywiser::one_sided::TeamTerms team) {
  using namespace waywiser::one_sided;
  CudaHeapBlock block;
  const OneSided<CudaHeapBlock> ranks(block, terms);
  auto* signal = ranks.at<std::uint64_t>(exchange_signal);
  auto *given = ranks.at<float>(exchange_given), *taken = ranks.at<float>(exchange_taken);
  const int next = (ranks.rank() + 1) % ranks.size();
  for (unsigned i = threadIdx.x; i < exchange_count; i += blockDim.x)
    given[i] = 1000.0f * static_cast<float>(ranks.rank()) + 0.5f * static_cast<float>(i);
  ranks.put_with_signal<Scope::block>(taken, given, exchange_count, signal, 1, SignalOp::add, next);
  ranks.wait_until<Scope::block>(signal, Comparison::ge, 1);
  Team<CudaHeapBlock>(ranks, team).barrier();
}
