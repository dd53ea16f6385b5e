#include "waywiser/collective/device_schedule/program_body.hpp"
#include "waywiser/collective/device_schedule/program_kernel.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::program {
namespace {

constexpr unsigned program_threads = 256;

__global__ void __launch_bounds__(program_threads) program_kernel(const __grid_constant__ ProgramArguments terms) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  block::CudaBlock block;
  ProgramBody<block::CudaBlock>(block, terms).run();
}

}  // namespace

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const ProgramArguments& terms) {
  return [=](void* stream) {
    launch_kernel(cache, program_kernel, terms.blocks, program_threads, true, stream, "launch of a schedule on a GPU",
                  terms);
  };
}

}  // namespace waywiser::program
