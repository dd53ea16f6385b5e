#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<Float16>(Method, unsigned, bool);
template KernelFunction find_kernel<Bfloat16>(Method, unsigned, bool);

}  // namespace waywiser::fused
