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

// What a rank knows of the GPU memory of others on its machine, and what it sets aside of its own for them: one of a
// session, for windows, messages and collectives alike. Used by one thread at a time.
class PeerMemory {
 public:
  // `timeout`: of its waits for GPUs, as it is then.
  PeerMemory(Platform& platform, const Seconds& timeout) : platform_(platform), timeout_(timeout) {}
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;
  ~PeerMemory() { close(); }

  // This rank's own memory, as others can open it. Throws unavailable or device.
  SharedRegion share(ConstRegion own) { return platform_.share(own); }
  // The whole allocation that another process has shared, for kernels and copies of the GPU `user`. It is mapped once,
  // as long as anybody holds it. Throws unavailable or device.
  std::shared_ptr<const Memory> open(const SharedRegion& shared, Place user);
  // The part itself; kept open until much else has been opened, or other memory lies at its address.
  Region open_for_long(const SharedRegion& shared, Place user);
  // Of a memory that only its owner's descriptor names.
  std::shared_ptr<const Memory> open(const MemoryHandle& handle, Place user);

  // What the groups of this rank receive into.
  ReceiveArena& arena(Place gpu);

  // Forgets what open_for_long() keeps.
  void forget() noexcept;
  // Every memory of this rank's own goes back to its GPU: no rank writes there any more.
  void close() noexcept;

 private:
  struct Known {
    std::weak_ptr<const Memory> memory;
    std::shared_ptr<const Memory> kept;  // the same, for long
    std::array<std::byte, 64> opaque{};  // names an allocation while it lives: its address may be another one's later
    std::uint64_t used = 0;
  };
  using Key = std::tuple<std::uint64_t, std::uint64_t, int>;  // process, address, user

  Known& known(const SharedRegion& shared, Place user);
  std::shared_ptr<const Memory> open(Known& known, const SharedRegion& shared, Place user);
  void forget_oldest();

  Platform& platform_;
  const Seconds& timeout_;
  std::map<Key, Known> known_;
  std::uint64_t uses_ = 0;
  std::map<Place, std::unique_ptr<ReceiveArena>> arenas_;
};

}  // namespace waywiser
