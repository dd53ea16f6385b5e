#include "waywiser/kernels/copy.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/copy_body.hpp"
#include "waywiser/kernels/cuda_launchers.hpp"

namespace waywiser {

void launch_copy(Stream& stream, Region destination, ConstRegion source, unsigned blocks, unsigned threads,
                 LaunchCache* cache) {
  check_put(destination, source);
  if (blocks == 0 || blocks > 65535 || threads == 0 || threads > 1024)
    throw Error(ErrorKind::invalid_input, "copy kernel: " + std::to_string(blocks) + " blocks of " +
                                              std::to_string(threads) + " threads are out of range");
  if (destination.bytes == 0) return;
  if (!stream.place().is_gpu()) return stream.copy(destination, source);
  std::byte* to = stream.reach(destination);
  const std::byte* from = stream.reach(source);
  const Bytes bytes = destination.bytes;
  Kernel kernel{blocks, threads, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = cuda_copy_launcher(cache, to, from, bytes, blocks, threads);
  else
    kernel.body = [=](const ThreadContext& at) { copy_body(at, to, from, bytes); };
  stream.launch(kernel);
}

}  // namespace waywiser
