#include "waywiser/collective/fused/cuda/fused_kernels.cuh"

namespace waywiser::fused {

// Kernels for any number of ranks and any address: specialised kernels would take too long to compile.
template <>
KernelFunction find_kernel<RareNumber>(Method method, unsigned, bool, bool may_leave) {
  return may_leave ? kernel_of<block::LeavingBlock, RareNumber, block::max_ranks, false>(method)
                   : kernel_of<block::CudaBlock, RareNumber, block::max_ranks, false>(method);
}
template <>
SumFunction find_sum_kernel<RareNumber>(unsigned, bool) {
  return sum_kernel<RareNumber, block::max_ranks, false>;
}

}  // namespace waywiser::fused
