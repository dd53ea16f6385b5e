#include "waywiser/collective/fused/kernel.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"

namespace waywiser::fused {

using KernelFunction = void (*)(FusedArguments, FusedWork);
template <typename T>
KernelFunction find_kernel(Method method, unsigned ranks, bool exact, bool may_leave);
using SumFunction = void (*)(SumArguments);
template <typename T>
SumFunction find_sum_kernel(unsigned ranks, bool exact);

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const KernelShape& shape, const FusedArguments& terms,
                                         const FusedWork& work) {
  return [=](void* stream) {
    KernelFunction kernel = nullptr;
    with_kernel_type(work.type, work.op, work.reduced, [&]<typename T>() {
      kernel = find_kernel<T>(shape.method, terms.layout.ranks, work.exact, work.failed != nullptr);
    });
    launch_kernel(cache, kernel, shape.blocks, shape.threads, true, stream, "launch of a fused collective", terms,
                  work);
  };
}

std::function<void(void*)> cuda_launcher(LaunchCache* cache, const SumArguments& sum) {
  return [=](void* stream) {
    SumFunction kernel = nullptr;
    with_kernel_type(sum.type, sum.op, true, [&]<typename T>() { kernel = find_sum_kernel<T>(sum.ranks, sum.exact); });
    launch_kernel(cache, kernel, sum_blocks, sum_threads, false, stream, "launch of a sum", sum);
  };
}

}  // namespace waywiser::fused
