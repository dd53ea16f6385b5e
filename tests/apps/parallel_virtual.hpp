#pragma once

// The classes of apps/parallel.hpp on a virtual GPU: the apps' own sources then run there, for tests.
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/halo_exchange.hpp"

namespace apps {

constexpr int virtual_gpus = 8;
constexpr waywiser::Seconds patience = 60;

inline waywiser::Group join() {
  waywiser::VirtualMachine machine;
  machine.gpus = virtual_gpus;
  waywiser::JoinOptions options;
  options.platform = waywiser::open_virtual_platform(machine);
  return waywiser::Group::join(options);
}

class Processor {
 public:
  explicit Processor(waywiser::Group& group, int /*threads*/ = 1)
      : platform_(group.platform()),
        place_(waywiser::gpu(group.rank() % virtual_gpus)),
        stream_(platform_->open_stream(place_)) {}
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;
  ~Processor() { wait(); }

  static constexpr bool overlaps = false;
  waywiser::Place place() const noexcept { return place_; }
  waywiser::Platform& platform() const noexcept { return *platform_; }
  waywiser::Stream& stream() noexcept { return *stream_; }

  template <typename Function>
  void for_each(std::int64_t count, Function f) {
    launch([=] {
      for (std::int64_t i = 0; i < count; ++i) f(i);
    });
  }
  template <typename Function>
  void for_each(std::int64_t rows, std::int64_t columns, Function f) {
    launch([=] {
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column) f(row, column);
    });
  }
  template <typename Function>
  auto sum(std::int64_t count, Function f) {
    return fold(count, f, [](auto a, auto b) { return a + b; });
  }
  template <typename Function>
  auto sum(std::int64_t rows, std::int64_t columns, Function f) {
    return sum(rows * columns, [=](std::int64_t i) { return f(i / columns, i % columns); });
  }
  template <typename Function>
  auto max(std::int64_t count, Function f) {
    return fold(count, f, [](auto a, auto b) { return a < b ? b : a; });
  }

  void wait() { stream_->synchronize(waywiser::Deadline::in(patience)); }
  void start(waywiser::HaloExchange& halo) { halo.start(*stream_); }
  void exchange(waywiser::HaloExchange& halo) { halo.exchange(*stream_); }

 private:
  template <typename Body>
  void launch(Body body) {
    stream_->launch({1, 1, [body](const waywiser::ThreadContext&) { body(); }, {}});
  }
  template <typename Function, typename Combine>
  auto fold(std::int64_t count, Function f, Combine combine) {
    using T = decltype(f(std::int64_t{}));
    T all{};
    launch([=, &all] {
      for (std::int64_t i = 0; i < count; ++i) all = combine(all, f(i));
    });
    wait();
    return all;
  }

  std::shared_ptr<waywiser::Platform> platform_;
  waywiser::Place place_;
  std::unique_ptr<waywiser::Stream> stream_;
};

template <typename T>
class Array {
 public:
  Array(Processor& processor, std::int64_t size)
      : processor_(&processor),
        size_(static_cast<std::size_t>(size)),
        memory_(std::make_unique<waywiser::Memory>(
            processor.platform().allocate(processor.place(), size_ * sizeof(T) + 16, waywiser::Allocation::gpu))) {
    processor.for_each(size, [values = data()](std::int64_t i) { values[i] = T{}; });
    processor.wait();
  }

  // As kernels reach it; the host must not.
  T* data() const { return reinterpret_cast<T*>(processor_->stream().reach(region())); }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(size_); }
  waywiser::Elements elements() { return {region(), waywiser::DataTypeOf<T>::value}; }
  waywiser::HaloArray field(std::size_t components = 1, bool planar = false) {
    return {elements(), components, planar};
  }
  std::vector<T> values() const {
    std::vector<T> copy(size_);
    processor_->for_each(1, [=, this, to = copy.data()](std::int64_t) { std::memcpy(to, data(), size_ * sizeof(T)); });
    processor_->wait();
    return copy;
  }
  void assign(std::span<const T> values) {
    processor_->for_each(1, [=, this](std::int64_t) { std::memcpy(data(), values.data(), values.size() * sizeof(T)); });
    processor_->wait();
  }
  friend void swap(Array& a, Array& b) noexcept {
    std::swap(a.size_, b.size_);
    std::swap(a.memory_, b.memory_);
  }

 private:
  waywiser::Region region() const { return memory_->region().slice(0, size_ * sizeof(T)); }

  Processor* processor_;
  std::size_t size_;
  std::unique_ptr<waywiser::Memory> memory_;
};

}  // namespace apps
