#include "waywiser/collective/fused/cuda/overlapping_launch.hpp"
#include "waywiser/collective/fused/kernel.hpp"

namespace waywiser::fused {

using KernelFunction = void (*)(Terms, Work);
template <typename T>
KernelFunction find_kernel(Method method, unsigned ranks, bool exact);

std::function<void(void*)> cuda_launcher(const Shape& shape, DataType type, const Terms& terms, const Work& work) {
  return [=](void* stream) {
    KernelFunction kernel = nullptr;
    with_type(type, [&]<typename T>() { kernel = find_kernel<T>(shape.method, terms.layout.ranks, work.exact); });
    launch_overlapping(kernel, shape.blocks, shape.threads, stream, "launch of a fused collective", terms, work);
  };
}

}  // namespace waywiser::fused
