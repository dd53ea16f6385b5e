#include <algorithm>

#include "waywiser/collective/messages/message_body.hpp"
#include "waywiser/collective/messages/message_kernel.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/kernels/block/cuda_block.cuh"

namespace waywiser::messages {
namespace {

template <typename Block, Fit fit>
__global__ void __launch_bounds__(threads)
    message_kernel(const __grid_constant__ MessageArguments terms, const __grid_constant__ MessageWork work) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (block::is_over<Block>(work.failed)) return;
  Block block;
  if (blockIdx.x < work.give.blocks)
    MessageBody<Block, fit>(block, terms, work.give, work.places, blockIdx.x).send();
  else
    MessageBody<Block, fit>(block, terms, work.take, work.places, blockIdx.x - work.give.blocks).receive();
}

using KernelFunction = void (*)(MessageArguments, MessageWork);

template <typename Block>
KernelFunction kernel_for(Fit fit) {
  switch (fit) {
    case Fit::ll: return message_kernel<Block, Fit::ll>;
    case Fit::ll128: return message_kernel<Block, Fit::ll128>;
    case Fit::long_ll128: return message_kernel<Block, Fit::long_ll128>;
    case Fit::any: break;
  }
  return message_kernel<Block, Fit::any>;
}

// One thread for each packet or word of a line, up to the size of a block.
unsigned threads_for(const MessagePart& part) {
  if (part.kind == Kind::bulk && part.blocks != 0) return threads;
  const std::uint64_t units =
      part.kind == Kind::ll128 ? part.piece / block::data_bytes_of_pair * block::lanes_of_pair : part.piece / 8;
  return static_cast<unsigned>(std::clamp<std::uint64_t>((units + 31) / 32 * 32, 32, threads));
}

}  // namespace

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const MessageArguments& terms, const MessageWork& work) {
  return [=](void* stream) {
    const Fit fit = fit_of(work);
    const auto kernel =
        work.failed != nullptr ? kernel_for<block::LeavingBlock>(fit) : kernel_for<block::CudaBlock>(fit);
    launch_kernel(cache, kernel, work.give.blocks + work.take.blocks,
                  std::max(threads_for(work.give), threads_for(work.take)), true, stream,
                  "launch of a message between GPUs", terms, work);
  };
}

}  // namespace waywiser::messages
