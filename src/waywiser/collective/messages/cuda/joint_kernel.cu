#include "waywiser/collective/messages/joint_work.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::messages {
namespace {

template <typename Block, Fit fit>
__global__ void __launch_bounds__(threads)
    joint_kernel(const __grid_constant__ MessageArguments terms, const __grid_constant__ JointWork work) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  run_joint<fit>(block, terms, work, blockIdx.x);
}

using JointFunction = void (*)(MessageArguments, JointWork);

template <typename Block>
JointFunction joint_kernel_for(Fit fit) {
  switch (fit) {
    case Fit::ll: return joint_kernel<Block, Fit::ll>;
    case Fit::ll128: return joint_kernel<Block, Fit::ll128>;
    case Fit::long_ll128: return joint_kernel<Block, Fit::long_ll128>;
    case Fit::any: break;
  }
  return joint_kernel<Block, Fit::any>;
}

}  // namespace

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const MessageArguments& terms, const JointWork& work) {
  return [=](void* stream) {
    const Fit fit = fit_of(work);
    const auto kernel =
        work.failed != nullptr ? joint_kernel_for<block::LeavingBlock>(fit) : joint_kernel_for<block::CudaBlock>(fit);
    launch_kernel(cache, kernel, work.blocks(), threads, true, stream, "launch of messages between GPUs", terms, work);
  };
}

}  // namespace waywiser::messages
