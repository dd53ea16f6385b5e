#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "waywiser/collective/gpu/group_memory.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"

namespace waywiser {

// The memory of one rank's GPU into which the other ranks of a group write, and their memory as this rank's GPU reaches
// it. When the others have left the group too, the memory returns to the arena.
class ReceiveBuffers {
 public:
  ReceiveBuffers(PeerMemory& peers, Place gpu, int rank) : peers_(peers), gpu_(gpu), rank_(rank) {}
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;
  ~ReceiveBuffers() { give_back(); }

  // This rank's slice, of the size agreed by all ranks; returns what the others need to open it. Throws the platform's
  // errors.
  SharedRegion take(const GroupMemory& memory);
  Region fused() const { return slice_.slice(memory_.fused_at(), memory_.messages_at() - memory_.fused_at()); }
  Region messages() const { return slice_.slice(memory_.messages_at(), memory_.bytes() - memory_.messages_at()); }
  // Eight bytes that only this rank uses.
  Region own_word() const { return slice_.slice(GroupMemory::own_word_at, sizeof(std::uint64_t)); }
  // Opens another rank's slice. Throws unavailable or device. A slice that is not open stays empty below and is never
  // written.
  void open(std::size_t rank, const SharedRegion& slice);
  void close(std::size_t rank) noexcept;
  std::vector<Region> fused_of_all() const;
  std::vector<Region> messages_of_all() const;

  // The same for memory of larger operations, beyond the arena's limit.
  Region take_apart(Bytes bytes);
  std::vector<Region> open_apart(std::span<const SharedRegion> memories, Region own);
  // For one operation, within the limit. Throws unavailable if there is no room.
  Region take_within(Bytes bytes);
  void give_back(Region memory) noexcept;

  // Nobody has used it: no rank has written here, and none will.
  void give_back() noexcept;
  // From now on others may have written here: the slice waits until they leave.
  void set_in_use() { in_use_ = true; }
  // This rank's kernels have ended: tells the others, by `stream`, that it writes nothing any more.
  void leave(Stream& stream) noexcept;
  // The session closes for all groups at once: this rank tells nobody.
  void let_go() noexcept;

 private:
  PeerMemory& peers_;
  Place gpu_;
  int rank_;
  GroupMemory memory_;
  Region slice_;
  std::vector<Region> more_;  // in addition to the slice
  struct Opened {
    std::shared_ptr<const Memory> memory;
    Region slice;
  };
  std::vector<Region> slices() const;
  std::map<std::size_t, Opened> opened_;                     // by rank
  std::vector<std::shared_ptr<const Memory>> opened_apart_;  // of the other ranks
  bool in_use_ = false, gone_ = false;
};

}  // namespace waywiser
