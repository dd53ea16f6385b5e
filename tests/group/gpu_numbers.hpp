#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

constexpr Seconds much_time = 20;

// GpuNumbers on this rank's GPU.
class GpuNumbers {
 public:
  GpuNumbers(Group& group, std::size_t count)
      : count_(count),
        memory_(group.platform()->allocate(gpu_of_rank(group), bytes(), Allocation::gpu)),
        host_(group.platform()->allocate(host(0), bytes(), Allocation::pinned)),
        stream_(group.platform()->open_stream(gpu_of_rank(group))) {
    set([](std::size_t) { return -1; });
  }
  GpuNumbers(Group& group, std::size_t count, const std::function<int(std::size_t)>& value) : GpuNumbers(group, count) {
    set(value);
  }

  void set(const std::function<int(std::size_t)>& value) {
    for (std::size_t i = 0; i < count_; ++i) on_host()[i] = value(i);
    stream_->copy(memory_.region().slice(0, bytes()), host_.region().slice(0, bytes()));
    stream_->synchronize(Deadline::in(much_time));
  }
  Elements elements() const { return {memory_.region().slice(0, count_ * sizeof(std::int32_t)), DataType::int32}; }
  // The received array, in stream order.
  void enqueue_look(Stream& stream) {
    stream.copy(host_.region().slice(0, bytes()), memory_.region().slice(0, bytes()));
  }
  bool are(const std::function<int(std::size_t)>& value) const {
    for (std::size_t i = 0; i < count_; ++i)
      if (on_host()[i] != value(i)) return false;
    return true;
  }
  void expect(Stream& stream, const std::function<int(std::size_t)>& value, const std::string& what) {
    enqueue_look(stream);
    stream.synchronize(Deadline::in(much_time));
    for (std::size_t i = 0; i < count_; ++i)
      require_that(on_host()[i] == value(i), what + ": number " + std::to_string(i) + " is " +
                                                 std::to_string(on_host()[i]) + ", not " + std::to_string(value(i)));
  }

 private:
  Bytes bytes() const { return std::max<Bytes>(count_, 1) * sizeof(std::int32_t); }
  std::int32_t* on_host() const { return reinterpret_cast<std::int32_t*>(host_.region().data); }

  std::size_t count_;
  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
};

inline int value_of(int rank, std::size_t i) { return rank * 1000 + static_cast<int>(i % 997); }

inline std::function<int(std::size_t)> of_rank(int rank) {
  return [rank](std::size_t i) { return value_of(rank, i); };
}

}  // namespace waywiser
