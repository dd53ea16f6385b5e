#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser::fused {

using KernelFunction = void (*)(Terms, Work);
template <typename T>
KernelFunction find_kernel(Method method, unsigned ranks, bool exact);

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
    KernelFunction kernel = nullptr;
    with_type(type, [&]<typename T>() { kernel = find_kernel<T>(shape.method, terms.layout.ranks, work.exact); });
    check_cuda(cudaLaunchKernelEx(&config, kernel, terms, work), "launch of a fused collective");
  };
}

}  // namespace waywiser::fused
