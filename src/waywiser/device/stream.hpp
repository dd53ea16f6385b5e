#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "waywiser/base/units.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

// The position of one thread of a kernel; kernel bodies are templates over it or over CUDA's own.
struct ThreadContext {
  unsigned block = 0, blocks = 1, thread = 0, threads = 1;
};

// One kernel, for either kind of GPU. A virtual GPU runs `body` once for each thread; `cuda` enqueues on a cudaStream_t
// and is empty in a build without CUDA.
struct Kernel {
  unsigned blocks = 1, threads = 1;
  std::function<void(const ThreadContext&)> body;
  std::function<void(void* cuda_stream)> cuda;
};

// Caches launch state for a caller whose kernels on one GPU run in stream order. Free it when all of them have ended.
class LaunchCache {
 public:
  virtual ~LaunchCache() = default;
};

// A point in a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool done() const = 0;
  virtual void synchronize(Deadline deadline) const = 0;  // throws timeout
  // Device time from `earlier` to this one; both must be timed events that are done. Throws device or invalid_input.
  virtual Seconds since(const Event& earlier) const = 0;
};

class Stream;

// Captured work of a stream, which can be run any number of times on its GPU.
class StreamGraph {
 public:
  virtual ~StreamGraph() = default;
  virtual void launch(Stream& stream) = 0;
};

// Ordered work. Calls only enqueue; synchronize() throws errors of the work itself. The stream of a host place is
// inline: each call has finished when it returns.
class [[gnu::visibility("default")]] Stream {
 public:
  virtual ~Stream() = default;
  virtual Place place() const = 0;
  // By the copy engine (GPU) or memcpy (host). Throws device if this stream's device cannot reach a region.
  virtual void copy(Region destination, ConstRegion source) = 0;
  // The address of `region` for a kernel body on this stream; the body must use no other address. Throws device if this
  // stream's device cannot reach it.
  virtual const std::byte* reach(ConstRegion region) const { return region.data; }
  std::byte* reach(Region region) const { return const_cast<std::byte*>(reach(ConstRegion(region))); }
  // Call it before a copy from pageable memory that this stream itself writes: CUDA may read such memory when the copy
  // is enqueued. Waits if necessary.
  virtual void before_pageable_read() {}
  // GPU streams only; a host stream throws unavailable.
  virtual void launch(const Kernel& kernel) = 0;
  // Writes the 8-byte aligned flag, or waits until it is >= `value`, in stream order.
  virtual void write_value(Region flag, std::uint64_t value) = 0;
  virtual void wait_value(ConstRegion flag, std::uint64_t at_least) = 0;
  // Runs a host function in order; the function must not call the device.
  virtual void call(std::function<void()> function) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(const Event& event) = 0;
  // Whether all work is complete. Throws device with its first error.
  virtual bool done() = 0;
  // Throws timeout, or device with the first error of the enqueued work.
  virtual void synchronize(Deadline deadline) = 0;
  // cudaStream_t, or nullptr.
  virtual void* native() const { return nullptr; }
  // Whether enqueued work goes into a graph instead of running.
  virtual bool capturing() const { return false; }
  // Captures the work that `enqueue` enqueues; it does not run. Throws unavailable without graphs.
  virtual std::unique_ptr<StreamGraph> capture(const std::function<void()>& enqueue);
};

}  // namespace waywiser
