#include "waywiser/collective/fused/cuda/cuda_block.cuh"
#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/collective/fused/packets_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser::fused {
namespace {

// Lets the next kernel of the stream be launched, then waits for the end of the one before.
__device__ void overlap_launches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename T, unsigned most>
__global__ void __launch_bounds__(512)
    packets_kernel(const __grid_constant__ Terms terms, const __grid_constant__ Work work) {
  overlap_launches();
  CudaBlock block;
  PacketsBody<T, most, CudaBlock>(block, terms, work).run();
}

template <typename T, unsigned most>
__global__ void __launch_bounds__(512, 2)
    one_shot_kernel(const __grid_constant__ Terms terms, const __grid_constant__ Work work) {
  overlap_launches();
  CudaBlock block;
  PushBody<T, most, CudaBlock>(block, terms, work).run_one_shot();
}

template <typename T, unsigned most>
__global__ void __launch_bounds__(512, 2)
    two_shot_kernel(const __grid_constant__ Terms terms, const __grid_constant__ Work work) {
  overlap_launches();
  CudaBlock block;
  PushBody<T, most, CudaBlock>(block, terms, work).run_two_shot();
}

using KernelFunction = void (*)(Terms, Work);

template <typename T, unsigned most>
KernelFunction kernel_of(Method method) {
  if (method == Method::packets) return packets_kernel<T, most>;
  return method == Method::one_shot ? one_shot_kernel<T, most> : two_shot_kernel<T, most>;
}

KernelFunction find_kernel(Method method, DataType type, unsigned ranks) {
  KernelFunction kernel = nullptr;
  with_type(type,
            [&]<typename T>() { kernel = ranks <= 4 ? kernel_of<T, 4>(method) : kernel_of<T, most_ranks>(method); });
  return kernel;
}

}  // namespace

std::function<void(void*)> cuda_launcher(const Shape& shape, DataType type, const Terms& terms, const Work& work) {
  return [=](void* stream) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(shape.blocks);
    config.blockDim = dim3(shape.threads);
    config.stream = static_cast<cudaStream_t>(stream);
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = 1;
    const KernelFunction kernel = find_kernel(shape.method, type, terms.layout.ranks);
    check_cuda(cudaLaunchKernelEx(&config, kernel, terms, work), "launch of a fused collective");
  };
}

}  // namespace waywiser::fused
