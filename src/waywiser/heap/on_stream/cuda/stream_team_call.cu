#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/heap/device/cuda_heap_block.cuh"
#include "waywiser/heap/on_stream/stream_team_call.hpp"

namespace waywiser::one_sided {
namespace {

constexpr unsigned threads = 512;

__global__ void __launch_bounds__(threads) stream_team_call_kernel(const __grid_constant__ StreamTeamCall call) {
  CudaHeapBlock gpu;
  run_stream_team_call(gpu, call);
}

}  // namespace

std::function<void(void*)> cuda_launcher(const StreamTeamCall& call) {
  return [=](void* stream) {
    launch_kernel(nullptr, stream_team_call_kernel, 1, threads, false, stream, "launch of a collective on a heap",
                  call);
  };
}

}  // namespace waywiser::one_sided
