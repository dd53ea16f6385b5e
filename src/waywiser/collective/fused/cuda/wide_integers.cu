#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<std::int32_t>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<std::int32_t>(unsigned, bool);
template KernelFunction find_kernel<std::int64_t>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<std::int64_t>(unsigned, bool);

}  // namespace waywiser::fused
