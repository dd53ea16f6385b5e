#pragma once

#include <map>
#include <optional>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// The memory of one GPU into which other ranks send, for all groups of a rank. Groups get disjoint slices, so their
// operations can run at once, on any streams and in graphs; no group ever waits for another.
class ReceiveArena {
 public:
  // Limits all slices together. Extra memory of larger operations does not count: see take_apart().
  static constexpr Bytes limit = Bytes{64} << 20;
  // At the beginning of each slice: a word for each rank of the group, set to 1 by that rank when it has left.
  static constexpr Bytes header_bytes = 4096;

  // `timeout`: the limit of its waits for the GPU.
  ReceiveArena(Platform& platform, Place gpu, const Seconds& timeout);

  // The most that a group of `ranks` should take now, so that enough is left for others, and that it can take.
  Bytes share_for(int ranks);
  Bytes most() const;
  // Includes the cleared header; begins at a multiple of 4096. Empty: there is no room. Throws the platform's errors.
  std::optional<Region> take(Bytes bytes);
  // The same without a header, not cleared, for one operation of a group.
  std::optional<Region> take_plain(Bytes bytes);
  // Memory of its own, beyond the limit. Throws the platform's errors.
  Region take_apart(Bytes bytes);

  // Nobody writes there any more.
  void give_back(Region memory) noexcept;
  // This rank has left the group; others may still write to the slice until `others` of them have left too. `more`: the
  // group's other memory, within the limit and beyond it.
  void leave(Region slice, int others, std::vector<Region> more) noexcept;
  // Returns all memory to the GPU: no rank writes there any more.
  void close() noexcept;

 private:
  struct Leaving {
    Region slice;
    int others = 0;
    std::vector<Region> more;
  };
  struct Hole {
    std::byte* begin;
    Bytes bytes;
  };
  void collect();
  bool have_left(const Leaving& group);
  std::optional<Region> cut_off(Bytes bytes);

  Platform& platform_;
  Place gpu_;
  const Seconds& timeout_;
  Bytes taken_ = 0, set_aside_ = 0;  // by slices, and for them
  std::vector<Memory> blocks_;
  std::vector<Hole> holes_;  // by address; of one block each
  std::map<const std::byte*, Memory> apart_;
  std::vector<Leaving> leaving_;
};

}  // namespace waywiser
