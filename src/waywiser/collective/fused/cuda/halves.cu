#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<Float16>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<Float16>(unsigned, bool);
template KernelFunction find_kernel<Bfloat16>(Method, unsigned, bool, bool);
template SumFunction find_sum_kernel<Bfloat16>(unsigned, bool);

}  // namespace waywiser::fused
