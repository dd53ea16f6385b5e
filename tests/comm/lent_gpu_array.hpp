#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "waywiser/comm/elements.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// A GPU array that is given away at some point; the new owner checks that nobody writes to it.
class LentGpuArray {
 public:
  LentGpuArray(Platform& platform, int gpu_index, std::size_t bytes, std::byte fill)
      : on_gpu_(platform.allocate(gpu(gpu_index), bytes, Allocation::gpu)),
        on_host_(platform.allocate(host(0), bytes, Allocation::pinned)),
        stream_(platform.open_stream(gpu(gpu_index))),
        bytes_(bytes) {
    write(fill);
  }

  Elements elements() const { return {on_gpu_.region().slice(0, bytes_), DataType::uint8}; }
  void replace() { write(poison); }
  bool is_untouched() {
    copy(there(), elements().region);
    return std::all_of(there().data, there().data + bytes_, [](std::byte one) { return one == poison; });
  }

 private:
  static constexpr std::byte poison{0x5a};

  Region there() const { return on_host_.region().slice(0, bytes_); }
  void write(std::byte value) {
    std::memset(there().data, static_cast<int>(value), bytes_);
    copy(elements().region, there());
  }
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(20));
  }

  Memory on_gpu_, on_host_;
  std::unique_ptr<Stream> stream_;
  std::size_t bytes_;
};

}  // namespace waywiser
