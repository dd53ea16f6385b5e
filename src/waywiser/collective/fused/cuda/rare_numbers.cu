#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

// The kernels for any number of ranks and any address: for others, compilers would take longer.
template <>
KernelFunction find_kernel<RareNumber>(Method method, unsigned, bool) {
  return kernel_of<RareNumber, block::max_ranks, false>(method);
}

}  // namespace waywiser::fused
