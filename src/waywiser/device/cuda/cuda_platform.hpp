#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/cuda_memory.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// NVIDIA GPUs through the CUDA runtime; the host platform serves host places, with pinned memory on request.
class CudaPlatform : public Platform {
 public:
  CudaPlatform();

  std::string_view backend() const override { return "cuda"; }
  int gpu_count() const override { return static_cast<int>(devices_.size()); }
  std::string identity(int gpu) const override;
  int multiprocessors(int gpu) const override;
  Bytes free_memory(Place place) const override;
  Bytes allocated_memory(int gpu) const override { return *allocated_.at(static_cast<std::size_t>(gpu)); }
  Place nearest_host(int gpu) const override;
  std::optional<std::string> why_no_peer_access(int gpu, int peer) const override;
  void set_peer_access(int gpu, int peer, bool on) override;
  std::optional<std::string> why_no_whole_lines(int gpu, int peer) const override;
  std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const override;
  Memory allocate(Place place, Bytes bytes, Allocation allocation) override;
  MemoryHandle export_memory(const Memory& memory) override;
  Memory open_memory_for(const MemoryHandle& handle, Place user) override;
  int native_number(int gpu) const override { return ordinal(gpu); }
  std::optional<Place> gpu_of(const std::byte* address) const override;
  SharedRegion share(ConstRegion region) override;
  Memory open_shared(const SharedRegion& shared, Place user) override;
  std::unique_ptr<Stream> open_stream(Place place) override;
  std::unique_ptr<Stream> borrow_stream(Place gpu, std::uintptr_t native) override;
  std::unique_ptr<Event> create_event(Place place) override;
  std::unique_ptr<Event> create_timed_event(Place place) override;
  std::unique_ptr<LaunchCache> create_launch_cache(Place place) override;
  std::string state() const override;

 private:
  using OpaqueHandle = std::array<std::byte, 64>;

  int ordinal(int gpu) const;  // throws invalid_input: "there is no gpu7: this machine shows 4 GPUs"
  std::vector<int> reachers(int gpu) const;
  Memory allocate_gpu(Place place, Bytes bytes, Allocation allocation);
  Memory allocate_host(Place place, Bytes bytes, Allocation allocation);
  std::shared_ptr<CudaRange> exported_here(const MemoryHandle& handle);
  std::shared_ptr<CudaRange> open_ipc(const MemoryHandle& handle, int user);

  std::vector<CudaDevice> devices_;
  std::vector<std::shared_ptr<std::atomic<Bytes>>> allocated_;  // by GPU
  std::unique_ptr<Platform> host_;
  const bool peer_access_off_;
  // Ranges opened by cudaIpc, by handle and using GPU. Opening costs up to 4 ms, so it is shared.
  std::map<std::pair<OpaqueHandle, int>, std::weak_ptr<CudaRange>> open_handles_;
  // Memory that this process itself has exported, by handle and offset: CUDA would not open it here.
  std::map<std::pair<OpaqueHandle, Bytes>, std::weak_ptr<CudaRange>> exported_;
  std::mutex mutex_;
};

}  // namespace waywiser
