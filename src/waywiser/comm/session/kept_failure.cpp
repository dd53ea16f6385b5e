#include "waywiser/comm/session/kept_failure.hpp"

#include <atomic>
#include <new>

#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

constexpr Bytes word_bytes = 64;

}  // namespace

KeptFailure::KeptFailure(Platform& platform, Place gpu)
    : on_gpu_(platform.allocate(gpu, word_bytes, Allocation::gpu)),
      of_host_(platform.allocate(platform.nearest_host(gpu.index), word_bytes, Allocation::pinned)) {
  const std::unique_ptr<Stream> stream = platform.open_stream(gpu);
  clear(*stream, on_gpu_.region());
  new (of_host_.region().data) std::uint32_t(0);
  reached_ = reinterpret_cast<std::uint32_t*>(stream->reach(on_gpu_.region()));
  told_ = reinterpret_cast<const std::uint32_t*>(stream->reach(of_host_.region()));
}

void KeptFailure::tell() noexcept {
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(of_host_.region().data)).store(1, std::memory_order_release);
}

}  // namespace waywiser
