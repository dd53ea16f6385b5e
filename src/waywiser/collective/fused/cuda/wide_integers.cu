#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<std::int32_t>(Method, unsigned, bool);
template KernelFunction find_kernel<std::int64_t>(Method, unsigned, bool);

}  // namespace waywiser::fused
