#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "waywiser/collective/gpu/group_memory.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"

namespace waywiser {

// The memory of one rank's GPU that the other ranks of a group write into, and theirs as this rank's GPU reaches it.
// What it was given goes back to the arena when the others have left the group, too.
class ReceiveBuffers {
 public:
  ReceiveBuffers(PeerMemory& peers, Place gpu, int rank) : peers_(peers), gpu_(gpu), rank_(rank) {}
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;
  ~ReceiveBuffers() { give_back(); }

  // Of this rank: a slice as all ranks have agreed on, and what the others need to open it. Throws as the platform
  // does.
  SharedRegion take(const GroupMemory& memory);
  Region fused() const { return slice_.slice(memory_.fused_at(), memory_.messages_at() - memory_.fused_at()); }
  Region messages() const { return slice_.slice(memory_.messages_at(), memory_.bytes() - memory_.messages_at()); }
  // Eight bytes that are this rank's alone.
  Region own_word() const { return slice_.slice(GroupMemory::own_word_at, sizeof(std::uint64_t)); }
  // Another rank's. Throws unavailable or device. What is not open stays empty below, and is not written to.
  void open(std::size_t rank, const SharedRegion& slice);
  void close(std::size_t rank) noexcept;
  std::vector<Region> fused_of_all() const;
  std::vector<Region> messages_of_all() const;

  // The same of memory for larger operations, beyond the arena's limit.
  Region take_apart(Bytes bytes);
  std::vector<Region> open_apart(std::span<const SharedRegion> memories, Region own);
  // For one operation, within the limit. Throws unavailable where there is no room.
  Region take_within(Bytes bytes);
  void give_back(Region memory) noexcept;

  // Nobody has used it: no rank has written here, and none will.
  void give_back() noexcept;
  // From now on others may have written here: the slice waits for them to leave.
  void set_in_use() { in_use_ = true; }
  // This rank's kernels have ended: the others are told, by `stream`, that it writes nothing any more.
  void leave(Stream& stream) noexcept;
  // The session closes, all at once: nobody needs to be told.
  void let_go() noexcept;

 private:
  PeerMemory& peers_;
  Place gpu_;
  int rank_;
  GroupMemory memory_;
  Region slice_;
  std::vector<Region> more_;  // besides the slice
  struct Opened {
    std::shared_ptr<const Memory> memory;
    Region slice;
  };
  std::vector<Region> slices() const;
  std::map<std::size_t, Opened> opened_;                     // by rank
  std::vector<std::shared_ptr<const Memory>> opened_apart_;  // of the others
  bool in_use_ = false, gone_ = false;
};

}  // namespace waywiser
