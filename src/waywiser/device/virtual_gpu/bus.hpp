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

// One memory that virtual GPUs know of: the addresses that users see, and the pages behind them.
struct BusMemory {
  Region region;
  bool mapped_for_peers = false;             // opened from another process, or virtual memory management
  std::shared_ptr<const Mapping> touchable;  // of GPU memory; empty for host memory, which is its own
  int file = -1;                             // of GPU memory: open as long as the memory is there
  int only_for = -1;                         // the only GPU whose kernels reach it; -1: any that reaches its GPU
};

// An address that work may touch, and what keeps it valid.
struct Reached {
  std::byte* data = nullptr;
  std::shared_ptr<const Mapping> keeps;
};

// What the virtual GPUs of one platform share; outlives platform, memories and streams. Thread-safe.
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
  // Takes from the memory of a GPU; throws device when it has not as much.
  void reserve(Place place, Bytes bytes);
  void release(Place place, Bytes bytes);
  Bytes free_memory(int gpu) const;

  // Set when a kernel of that GPU has trapped.
  std::atomic<bool>& trapped(int gpu) { return trapped_[static_cast<std::size_t>(gpu)]; }

  // The allocation that a region is in. Throws device.
  BusMemory allocation_of(ConstRegion region) const;

  enum class Access { copy_engine, kernel };
  // Where work on `gpu` finds the bytes. Throws device when it cannot reach them: no such memory, no peer access,
  // and for kernels also peer access not switched on and host memory that is not pinned or shared.
  Reached reach(int gpu, ConstRegion region, Access access) const;

 private:
  const BusMemory* find(ConstRegion region) const;
  void check_peer(int gpu, ConstRegion region, const BusMemory& memory, Access access) const;

  VirtualMachine machine_;
  Scheduler scheduler_;
  mutable std::shared_mutex mutex_;
  std::map<const std::byte*, BusMemory> memories_;  // by address
  std::vector<std::vector<bool>> peer_access_;      // switched on
  std::vector<Bytes> used_;
  std::vector<std::atomic<bool>> trapped_;
};

// As every call on that GPU does then.
[[noreturn]] void throw_trapped(Place gpu);

}  // namespace waywiser
