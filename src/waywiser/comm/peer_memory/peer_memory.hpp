#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "waywiser/comm/peer_memory/receive_arena.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/shared_region.hpp"

namespace waywiser {

// The GPU memory of other ranks on this machine, and the memory that this rank sets aside for them: one per session,
// for windows, messages and collectives. Used by one thread at a time.
class PeerMemory {
 public:
  // `timeout`: the limit of its waits for GPUs, read at each wait.
  PeerMemory(Platform& platform, const Seconds& timeout) : platform_(platform), timeout_(timeout) {}
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  ~PeerMemory() { close(); }

  // A handle of this rank's own memory, for other ranks. Throws unavailable or device.
  SharedRegion share(ConstRegion own) { return platform_.share(own); }
  // The whole allocation that another process has shared, for kernels and copies of the GPU `user`. It is mapped once,
  // while anybody holds it. Throws unavailable or device.
  std::shared_ptr<const Memory> open(const SharedRegion& shared, Place user);
  struct Part {
    std::shared_ptr<const Memory> memory;
    Region region;
  };
  // The shared part of an allocation, which stays open while anybody holds it. Afterwards it is kept for the next
  // message, until much else has been opened or other memory has its address: an allocation that its owner has freed
  // still takes up memory of its GPU while it is open.
  Part open_and_keep(const SharedRegion& shared, Place user);

  // The memory into which this rank's groups receive.
  ReceiveArena& arena(Place gpu);

  // Closes the memory that open_and_keep() keeps and nobody holds.
  void forget() noexcept;
  // Returns all of this rank's own memory to its GPU: no rank writes there any more.
  void close() noexcept;

 private:
  struct Known {
    std::weak_ptr<const Memory> memory;
    std::shared_ptr<const Memory> kept;  // of open_and_keep()
    std::array<std::byte, 64> opaque{};  // identifies an allocation: another one may later have its address
    std::uint64_t used = 0;
  };
  using Key = std::tuple<std::uint64_t, std::uint64_t, int>;  // process, address, user

  Known& known(const SharedRegion& shared, Place user);
  std::shared_ptr<const Memory> open(Known& known, const SharedRegion& shared, Place user);
  bool keeps_too_much() const;
  void forget_oldest();

  Platform& platform_;
  const Seconds& timeout_;
  std::map<Key, Known> known_;
  std::uint64_t uses_ = 0;
  std::map<Place, std::unique_ptr<ReceiveArena>> arenas_;
};

}  // namespace waywiser
