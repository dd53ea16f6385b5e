#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/device/shared_region.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// The devices of one machine as this process sees them. Thread-safe.
class Platform {
 public:
  virtual ~Platform() = default;

  virtual std::string_view backend() const = 0;  // "cuda", "virtual_gpu" or "host"
  virtual int gpu_count() const = 0;
  // Equal in two processes of one machine where it is the same GPU, whatever they number it: its PCI address.
  virtual std::string identity(int gpu) const;
  // The GPU of this process with that identity; nothing where it is hidden.
  std::optional<Place> find_gpu(std::string_view identity) const;
  virtual Bytes free_memory(Place place) const = 0;
  // Of a GPU, what allocate() has given out and has not got back.
  virtual Bytes allocated_memory(int /*gpu*/) const { return 0; }
  // The host memory that is closest to a GPU: where buffers for it belong.
  virtual Place nearest_host(int /*gpu*/) const { return host(0); }

  // So many blocks of threads run at the same time, whatever they need.
  virtual int multiprocessors(int /*gpu*/) const { return 132; }

  // Nothing: `gpu` can read and write the memory of `peer`. Otherwise the reason, for people:
  // "GPU 0 cannot map GPU 6 (no peer access: different root complexes)".
  virtual std::optional<std::string> why_no_peer_access(int gpu, int peer) const = 0;
  // Maps the plain allocations of `peer` for `gpu`, once; off again for measuring "peer access off".
  // Throws unavailable with why_no_peer_access.
  virtual void set_peer_access(int gpu, int peer, bool on) = 0;

  // Nothing: 128 bytes that neighbouring threads of `gpu` store at once into the memory of `peer` become visible there
  // as a whole, as over NVLink. Otherwise the reason, for people.
  virtual std::optional<std::string> why_no_whole_lines(int /*gpu*/, int /*peer*/) const { return {}; }

  virtual std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const = 0;
  // Page-aligned. Throws unavailable or device (out of memory) with size and place.
  virtual Memory allocate(Place place, Bytes bytes, Allocation allocation) = 0;
  // Throws unavailable when this allocation cannot be shared (pageable, pinned).
  virtual MemoryHandle export_memory(const Memory& memory) = 0;
  // Maps another process's memory for the local devices. Throws device when its owner has closed it.
  // Its address is for kernels and copies of `user`, which matters between GPUs: a plain GPU allocation is mapped for
  // one.
  virtual Memory open_memory_for(const MemoryHandle& handle, Place user) = 0;
  Memory open_memory(const MemoryHandle& handle) { return open_memory_for(handle, handle.place); }

  // The GPU whose memory is at `address`; nothing for memory that is not a GPU's, or that this process cannot use.
  virtual std::optional<Place> gpu_of(const std::byte* /*address*/) const { return {}; }

  // The number that CUDA itself, and so every other library, gives to a GPU.
  virtual int native_number(int gpu) const { return gpu; }

  // The same for memory that anybody has allocated on a GPU, in whole or in part. Throws unavailable or device.
  virtual SharedRegion share(ConstRegion region);
  // The whole allocation, for kernels and copies of the GPU `user`, which reaches it from now on. Throws unavailable or
  // device.
  virtual Memory open_shared(const SharedRegion& shared, Place user);

  virtual std::unique_ptr<Stream> open_stream(Place place) = 0;
  // A view of another library's stream on this GPU, a cudaStream_t as a number, 0 being CUDA's default stream; it must
  // outlive the view. Throws unavailable where there are none.
  virtual std::unique_ptr<Stream> borrow_stream(Place gpu, std::uintptr_t native);
  virtual std::unique_ptr<Event> create_event(Place place) = 0;
  // One that has a time, for Event::since(); it makes the GPU slower.
  virtual std::unique_ptr<Event> create_timed_event(Place place) { return create_event(place); }
  // nullptr where launches need none.
  virtual std::unique_ptr<LaunchCache> create_launch_cache(Place /*place*/) { return nullptr; }

  // Clocks, temperatures, power, driver and library versions: what a report must show beside the numbers.
  virtual Json state() const = 0;
};

// Host memory only; always there.
std::unique_ptr<Platform> open_host_platform();

// Nothing: CUDA devices can be opened. Otherwise: built without CUDA, no driver, no device, ...
std::optional<std::string> why_no_cuda();
// Throws unavailable with why_no_cuda().
std::unique_ptr<Platform> open_cuda_platform();

}  // namespace waywiser
