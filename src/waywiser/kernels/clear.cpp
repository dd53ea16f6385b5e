#include "waywiser/kernels/clear.hpp"

#include <cstring>

#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {

void clear(Stream& stream, Region region) {
  if (region.bytes == 0) return;
  std::byte* data = stream.reach(region);
  Kernel kernel;
  if (stream.native() != nullptr)
    kernel.cuda = cuda_clear_launcher(data, region.bytes);
  else
    kernel.body = [data, bytes = region.bytes](const ThreadContext&) { std::memset(data, 0, bytes); };
  stream.launch(kernel);
  stream.synchronize(Deadline::in(60));
}

}  // namespace waywiser
