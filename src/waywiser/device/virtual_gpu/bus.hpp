#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <shared_mutex>
#include <vector>

#include "waywiser/device/mapping.hpp"
#include "waywiser/device/memory.hpp"
#include "waywiser/device/virtual_gpu/scheduler.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

// A memory that virtual GPUs know: its address for users, and the pages behind it.
struct BusMemory {
  Region region;
  bool mapped_for_peers = false;                  // opened from another process, or virtual memory management
  std::shared_ptr<const Mapping> touchable = {};  // for GPU memory; empty for host memory
  std::shared_ptr<const Memory> host = {};  // for host memory: work that is enqueued keeps it, as CUDA waits in a free
  int file = -1;                            // for GPU memory: open while the memory exists
  int only_for = -1;                        // the only GPU whose kernels reach it; -1: all that reach its GPU
};

// An address that work may access, and the object that keeps it valid.
struct Reached {
  std::byte* data = nullptr;
  std::shared_ptr<const void> keeps;
};

// The shared state of one platform's virtual GPUs; outlives platform, memories and streams. Thread-safe.
class Bus {
 public:
  explicit Bus(VirtualMachine machine);

  const VirtualMachine& machine() const noexcept { return machine_; }
  Scheduler& scheduler() noexcept { return scheduler_; }

  std::optional<std::string> why_no_peer_access(int gpu, int peer) const;
  void set_peer_access(int gpu, int peer, bool on);

  void add(BusMemory memory);
  void remove(const std::byte* data);
  std::optional<Place> gpu_of(const std::byte* address) const;
  // Reserves memory of a GPU; throws device if it does not have enough.
  void reserve(Place place, Bytes bytes);
  void release(Place place, Bytes bytes);
  Bytes free_memory(int gpu) const;

  // Set when a kernel of that GPU has trapped.
  std::atomic<bool>& trapped(int gpu) { return trapped_[static_cast<std::size_t>(gpu)]; }

  // The allocation that contains a region. Throws device.
  BusMemory allocation_of(ConstRegion region) const;

  enum class Access { copy_engine, kernel };
  // The address of the bytes for work on `gpu`. Throws device if the GPU cannot reach them: no such memory, no peer
  // access; for kernels also if peer access is not enabled, or host memory is not pinned or shared.
  Reached reach(int gpu, ConstRegion region, Access access) const;

 private:
  const BusMemory* find(ConstRegion region) const;
  void check_peer(int gpu, ConstRegion region, const BusMemory& memory, Access access) const;

  VirtualMachine machine_;
  Scheduler scheduler_;
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, BusMemory> memories_;  // by address
  std::vector<std::vector<bool>> peer_access_;      // enabled
  std::vector<Bytes> used_;
  std::vector<std::atomic<bool>> trapped_;
};

// The error of every later call on that GPU.
[[noreturn]] void throw_trapped(Place gpu);

}  // namespace waywiser
