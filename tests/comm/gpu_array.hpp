#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

constexpr Seconds gpu_patience = 20;

// An array on one GPU, and the host's copy of its contents.
class GpuArray {
 public:
  GpuArray(Platform& platform, int gpu_index, std::size_t count)
      : memory_(platform.allocate(gpu(gpu_index), std::max<Bytes>(count, 1) * sizeof(float), Allocation::gpu)),
        host_(platform.allocate(host(0), std::max<Bytes>(count, 1) * sizeof(float), Allocation::pinned)),
        stream_(platform.open_stream(gpu(gpu_index))),
        count_(count) {}

  void fill(float first) {
    std::iota(values().begin(), values().end(), first);
    copy(memory_.region(), host_.region());
  }
  bool holds(float first) { return elements_hold(count_, first); }
  bool elements_hold(std::size_t count, float first) {
    copy(host_.region(), memory_.region());
    for (std::size_t i = 0; i < count; ++i)
      if (values()[i] != first + static_cast<float>(i)) return false;
    return true;
  }
  bool is(const std::vector<float>& expected) {
    copy(host_.region(), memory_.region());
    return std::ranges::equal(values(), expected);
  }
  Elements elements() const { return {memory_.region().slice(0, count_ * sizeof(float)), DataType::float32}; }
  const Memory& memory() const { return memory_; }

 private:
  std::span<float> values() { return {reinterpret_cast<float*>(host_.region().data), count_}; }
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(gpu_patience));
  }

  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
  std::size_t count_;
};

}  // namespace waywiser
