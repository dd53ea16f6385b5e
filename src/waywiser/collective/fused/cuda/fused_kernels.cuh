#pragma once

#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/collective/fused/ll128_body.hpp"
#include "waywiser/collective/fused/ll_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/fused/sum_body.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::fused {

// Lets the next kernel of the stream be launched, then waits for the end of the one before. Reads the parameters first:
// otherwise the way to them would be waited for afterwards.
__device__ inline void overlap_launches(const FusedArguments& terms, const FusedWork& work) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("" ::"l"(terms.landing[0]), "l"(terms.state), "r"(terms.rest), "l"(work.input), "r"(work.root));
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename Block, typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512)
    ll_kernel(const __grid_constant__ FusedArguments terms, const __grid_constant__ FusedWork work) {
  overlap_launches(terms, work);
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  LlBody<T, most, exact, Block>(block, terms, work).run();
}

template <typename Block, typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512, 2)
    one_shot_kernel(const __grid_constant__ FusedArguments terms, const __grid_constant__ FusedWork work) {
  overlap_launches(terms, work);
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  PushBody<T, most, exact, Block>(block, terms, work).run_one_shot();
}

template <typename Block, typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512, 2)
    two_shot_kernel(const __grid_constant__ FusedArguments terms, const __grid_constant__ FusedWork work) {
  overlap_launches(terms, work);
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  PushBody<T, most, exact, Block>(block, terms, work).run_two_shot();
}

template <typename Block, typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512, most > 4 ? 1 : 2)
    ll128_kernel(const __grid_constant__ FusedArguments terms, const __grid_constant__ FusedWork work) {
  overlap_launches(terms, work);
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  Ll128Body<T, most, 1, exact, Block>(block, terms, work).run_one_shot();
}

template <typename Block, typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512)
    two_shot_ll128_kernel(const __grid_constant__ FusedArguments terms, const __grid_constant__ FusedWork work) {
  overlap_launches(terms, work);
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  Ll128Body<T, most, (most > 4 ? 1 : 2), exact, Block>(block, terms, work).run_two_shot();
}

template <typename T, unsigned most, bool exact>
__global__ void __launch_bounds__(512, 2) sum_kernel(const __grid_constant__ SumArguments sum) {
  add_parts<T, most, exact>(block::CudaBlock(), sum);
}

using KernelFunction = void (*)(FusedArguments, FusedWork);
using SumFunction = void (*)(SumArguments);

template <typename Block, typename T, unsigned most, bool exact>
KernelFunction kernel_of(Method method) {
  switch (method) {
    case Method::ll: return ll_kernel<Block, T, most, exact>;
    case Method::one_shot: return one_shot_kernel<Block, T, most, exact>;
    case Method::two_shot: return two_shot_kernel<Block, T, most, exact>;
    case Method::ll128: return ll128_kernel<Block, T, most, exact>;
    case Method::two_shot_ll128: return two_shot_ll128_kernel<Block, T, most, exact>;
  }
  return nullptr;
}

// Every type is instantiated in one of the files here.
template <typename T>
KernelFunction find_kernel(Method method, unsigned ranks, bool exact, bool may_leave) {
  using Block = block::CudaBlock;
  if (may_leave) return kernel_of<block::LeavingBlock, T, block::max_ranks, false>(method);
  if (ranks <= 4) return exact ? kernel_of<Block, T, 4, true>(method) : kernel_of<Block, T, 4, false>(method);
  return exact ? kernel_of<Block, T, block::max_ranks, true>(method)
               : kernel_of<Block, T, block::max_ranks, false>(method);
}
template <typename T>
SumFunction find_sum_kernel(unsigned ranks, bool exact) {
  if (!exact) return sum_kernel<T, block::max_ranks, false>;
  if (ranks == 2) return sum_kernel<T, 2, true>;
  return ranks <= 4 ? sum_kernel<T, 4, true> : sum_kernel<T, block::max_ranks, true>;
}

}  // namespace waywiser::fused
