#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/device/memory.hpp"
#include "waywiser/device/shared_region.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

// The devices of one machine as this process sees them. Thread-safe.
class [[gnu::visibility("default")]] Platform {
 public:
  virtual ~Platform() = default;

  virtual std::string_view backend() const = 0;  // "cuda", "virtual_gpu" or "host"
  virtual int gpu_count() const = 0;
  // Equal in two processes of one machine for the same GPU, however they number it: its PCI address.
  virtual std::string identity(int gpu) const;
  // This process's GPU with that identity; empty if it is hidden.
  std::optional<Place> find_gpu(std::string_view identity) const;
  virtual Bytes free_memory(Place place) const = 0;
  // For a GPU: bytes that allocate() has given out and that have not been returned.
  virtual Bytes allocated_memory(int /*gpu*/) const { return 0; }
  // The host memory closest to a GPU: buffers for the GPU belong there.
  virtual Place nearest_host(int /*gpu*/) const { return host(0); }

  // This many blocks of threads run at the same time, whatever resources they need.
  virtual int multiprocessors(int /*gpu*/) const { return 132; }

  // Empty: `gpu` can read and write the memory of `peer`. Otherwise the reason, for people: "GPU 0 cannot map GPU 6 (no
  // peer access: different root complexes)".
  virtual std::optional<std::string> why_no_peer_access(int gpu, int peer) const = 0;
  // Maps the plain allocations of `peer` for `gpu`, once; can be undone to measure "peer access off". Throws
  // unavailable with why_no_peer_access.
  virtual void set_peer_access(int gpu, int peer, bool on) = 0;

  // Empty: 128 bytes that neighbouring threads of `gpu` store at once into the memory of `peer` become visible there as
  // a whole, as over NVLink. Otherwise the reason, for people.
  virtual std::optional<std::string> why_no_whole_lines(int /*gpu*/, int /*peer*/) const { return {}; }

  virtual std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const = 0;
  // Page-aligned. Throws unavailable or device (out of memory) with size and place.
  virtual Memory allocate(Place place, Bytes bytes, Allocation allocation) = 0;
  // Throws unavailable if this kind of allocation cannot be shared (pageable, pinned).
  virtual MemoryHandle export_memory(const Memory& memory) = 0;
  // Maps another process's memory for the local devices. Throws device if its owner has closed it. Its address serves
  // kernels and copies of `user`; this matters between GPUs, since a plain GPU allocation is mapped for one GPU.
  virtual Memory open_memory_for(const MemoryHandle& handle, Place user) = 0;
  Memory open_memory(const MemoryHandle& handle) { return open_memory_for(handle, handle.place); }

  // The GPU that owns the memory at `address`; empty for memory that is not a GPU's, or that this process cannot use.
  virtual std::optional<Place> gpu_of(const std::byte* /*address*/) const { return {}; }

  // The number of the GPU in CUDA, and so in all other libraries.
  virtual int native_number(int gpu) const { return gpu; }

  // A handle of any GPU memory, whoever allocated it, in whole or in part. Throws unavailable or device.
  virtual SharedRegion share(ConstRegion region);
  // The whole allocation, accessible from now on to kernels and copies of the GPU `user`. Throws unavailable or device.
  virtual Memory open_shared(const SharedRegion& shared, Place user);

  virtual std::unique_ptr<Stream> open_stream(Place place) = 0;
  // A view of another library's stream on this GPU: a cudaStream_t as a number, 0 for CUDA's default stream; it must
  // outlive the view. Throws unavailable without such streams.
  virtual std::unique_ptr<Stream> borrow_stream(Place gpu, std::uintptr_t native);
  virtual std::unique_ptr<Event> create_event(Place place) = 0;
  // An event with a time, for Event::since(); it slows the GPU down.
  virtual std::unique_ptr<Event> create_timed_event(Place place) { return create_event(place); }
  // nullptr if launches need none.
  virtual std::unique_ptr<LaunchCache> create_launch_cache(Place /*place*/) { return nullptr; }

  // Clocks, temperatures, power, driver and library versions, which a report must show beside the measurements: the
  // text of an object in JSON.
  virtual std::string state() const = 0;
};

// Host memory only; always available.
[[gnu::visibility("default")]] std::unique_ptr<Platform> open_host_platform();

// Empty: CUDA devices can be opened. Otherwise: built without CUDA, no driver, no device, ...
[[gnu::visibility("default")]] std::optional<std::string> why_no_cuda();
// Throws unavailable with why_no_cuda().
[[gnu::visibility("default")]] std::unique_ptr<Platform> open_cuda_platform();

}  // namespace waywiser
