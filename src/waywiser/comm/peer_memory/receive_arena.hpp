#pragma once

#include <map>
#include <optional>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// The memory of one GPU into which other ranks send, for all groups of a rank. Groups take slices that do not overlap,
// so that their operations can be under way at once, on any streams and in graphs; what one group does never waits for
// another one.
class ReceiveArena {
 public:
  // Of all slices together. What larger operations take besides is not counted: see take_apart().
  static constexpr Bytes limit = Bytes{64} << 20;
  // Slices begin with it: a word for each rank of the group, which writes 1 there when it has left.
  static constexpr Bytes header_bytes = 4096;

  // `timeout`: of its waits for the GPU.
  ReceiveArena(Platform& platform, Place gpu, const Seconds& timeout);

  // What a group of `ranks` should take at most now, so that enough is left for others; and what it can.
  Bytes share_for(int ranks);
  Bytes most() const;
  // `bytes` with the header, which is cleared; they begin at a multiple of 4096. Nothing: there is no room. Throws as
  // the platform does.
  std::optional<Region> take(Bytes bytes);
  // The same without a header, not cleared, for one operation of a group.
  std::optional<Region> take_plain(Bytes bytes);
  // Memory of its own, beyond the limit. Throws as the platform does.
  Region take_apart(Bytes bytes);

  // Nobody has written there, and nobody will.
  void give_back(Region memory) noexcept;
  // This rank has left the group; others may still write there until `others` of them have left it as well. `more`:
  // what the group has besides the slice, of the limit and beyond it.
  void leave(Region slice, int others, std::vector<Region> more) noexcept;
  // All is given back to the GPU: no rank writes there any more.
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
