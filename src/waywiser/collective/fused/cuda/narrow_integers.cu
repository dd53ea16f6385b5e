#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<std::int8_t>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<std::int8_t>(unsigned, bool);
template KernelFunction find_kernel<std::int16_t>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<std::int16_t>(unsigned, bool);
template KernelFunction find_kernel<std::uint8_t>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<std::uint8_t>(unsigned, bool);

}  // namespace waywiser::fused
