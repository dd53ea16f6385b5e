#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

template KernelFunction find_kernel<float>(Method, unsigned, bool);
template KernelFunction find_kernel<double>(Method, unsigned, bool);

}  // namespace waywiser::fused
