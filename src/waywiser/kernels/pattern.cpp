#include "waywiser/kernels/pattern.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "waywiser/kernels/cuda_launchers.hpp"
#include "waywiser/kernels/pattern_body.hpp"

namespace waywiser {
namespace {

// Enough for every GPU's memory bandwidth; a virtual GPU runs all threads one after the other.
struct Grid {
  unsigned blocks = 1, threads = 1;
};

Grid grid_for(const Stream& stream, Bytes bytes) {
  if (stream.native() == nullptr) return {2, 4};
  return {static_cast<unsigned>(std::clamp<Bytes>(bytes / 8 / 256, 1, 1024)), 256};
}

void fill_host(std::byte* data, Bytes bytes, std::uint64_t seed) {
  for (Bytes word = 0; word < bytes / 8; ++word) {
    const std::uint64_t value = pattern_word(seed, word);
    std::memcpy(data + 8 * word, &value, 8);
  }
  for (Bytes i = bytes / 8 * 8; i < bytes; ++i) data[i] = pattern_byte(seed, i);
}

Bytes wrong_bytes(std::uint64_t difference) {
  Bytes wrong = 0;
  for (; difference != 0; difference >>= 8) wrong += (difference & 0xff) != 0;
  return wrong;
}

Bytes count_host(const std::byte* data, Bytes bytes, std::uint64_t seed) {
  Bytes wrong = 0;
  for (Bytes word = 0; word < bytes / 8; ++word) {
    std::uint64_t value = 0;
    std::memcpy(&value, data + 8 * word, 8);
    if (value != pattern_word(seed, word)) wrong += wrong_bytes(value ^ pattern_word(seed, word));
  }
  for (Bytes i = bytes / 8 * 8; i < bytes; ++i) wrong += data[i] != pattern_byte(seed, i);
  return wrong;
}

Bytes count_cuda(Stream& stream, const std::byte* data, Bytes bytes, std::uint64_t seed, Deadline deadline) {
  const Grid grid = grid_for(stream, bytes);
  std::uint64_t* counter = nullptr;
  Kernel kernel{grid.blocks, grid.threads, {}, {}};
  kernel.cuda = [&](void* native) {
    counter = cuda_new_counter(native);
    cuda_count_launcher(data, bytes, seed, counter, grid.blocks, grid.threads)(native);
  };
  stream.launch(kernel);
  stream.synchronize(deadline);
  return cuda_read_counter(stream.native(), counter);
}

Bytes count_virtual(Stream& stream, const std::byte* data, Bytes bytes, std::uint64_t seed, Deadline deadline) {
  const Grid grid = grid_for(stream, bytes);
  const auto wrong = std::make_shared<std::atomic<Bytes>>(0);  // shared: the work may outlive a passed deadline
  Kernel kernel{grid.blocks, grid.threads, {}, {}};
  kernel.body = [=](const ThreadContext& at) { *wrong += count_body(at, data, bytes, seed); };
  stream.launch(kernel);
  stream.synchronize(deadline);
  return *wrong;
}

}  // namespace

void fill_pattern(Stream& stream, Region region, std::uint64_t seed) {
  if (region.bytes == 0) return;
  if (!stream.place().is_gpu()) return fill_host(region.data, region.bytes, seed);
  const Grid grid = grid_for(stream, region.bytes);
  std::byte* data = stream.reach(region);
  const Bytes bytes = region.bytes;
  Kernel kernel{grid.blocks, grid.threads, {}, {}};
  if (stream.native() != nullptr)
    kernel.cuda = cuda_fill_launcher(data, bytes, seed, grid.blocks, grid.threads);
  else
    kernel.body = [=](const ThreadContext& at) { fill_body(at, data, bytes, seed); };
  stream.launch(kernel);
}

Bytes count_mismatches(Stream& stream, ConstRegion region, std::uint64_t seed, Deadline deadline) {
  if (!stream.place().is_gpu() || region.bytes == 0) {
    stream.synchronize(deadline);
    return region.bytes == 0 ? 0 : count_host(region.data, region.bytes, seed);
  }
  const std::byte* data = stream.reach(region);
  return stream.native() != nullptr ? count_cuda(stream, data, region.bytes, seed, deadline)
                                    : count_virtual(stream, data, region.bytes, seed, deadline);
}

}  // namespace waywiser
