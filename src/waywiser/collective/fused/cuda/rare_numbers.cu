#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

// Kernels for any number of ranks and any address: specialised kernels would take too long to compile.
template <>
KernelFunction find_kernel<RareNumber>(Method method, unsigned, bool) {
  return kernel_of<RareNumber, block::max_ranks, false>(method);
}

}  // namespace waywiser::fused
