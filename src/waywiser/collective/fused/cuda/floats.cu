#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<float>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<float>(unsigned, bool);
template KernelFunction find_kernel<double>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<double>(unsigned, bool);

}  // namespace waywiser::fused
