#include "waywiser/kernels/elementwise.hpp"

#include <algorithm>

#include "waywiser/kernels/cuda_launchers.hpp"
#include "waywiser/kernels/elementwise_body.hpp"

namespace waywiser {

void apply_elementwise(Stream& stream, const Elementwise& operation, std::uint64_t count, Region result, ConstRegion a,
                       ConstRegion b) {
  if (count == 0) return;
  const bool has_b = operation.kind != Elementwise::Kind::scale;
  const ElementwiseArrays arrays{stream.reach(result), stream.reach(a), has_b ? stream.reach(b) : nullptr, count};
  Kernel kernel;  // a virtual GPU runs its threads one after the other
  if (stream.native() != nullptr) {
    kernel.threads = 256;
    kernel.blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(count / kernel.threads, 1, 4096));
    kernel.cuda = cuda_elementwise_launcher(operation, arrays, kernel.blocks, kernel.threads);
  } else {
    kernel.body = [=](const ThreadContext& at) {
      with_element_type(operation.type, [&](auto zero) { elementwise_body<decltype(zero)>(at, operation, arrays); });
    };
  }
  stream.launch(kernel);
}

}  // namespace waywiser
