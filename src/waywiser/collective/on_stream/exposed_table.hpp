#pragma once

#include <array>
#include <span>

#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/block/exposed.hpp"

namespace waywiser {

// What the ranks of a group have exposed, in the memory of this rank's GPU, where kernels look it up.
class ExposedTable {
 public:
  // What it needs on the GPU.
  static Bytes bytes();
  // Clears `table`, of the stream's GPU, which must stay. Throws as the platform does.
  ExposedTable(Platform& platform, Stream& stream, int rank, int ranks, Region table);

  // Memories of all ranks, as this process has them mapped for this GPU, in a slot (1 to block::exposed_slots) that no
  // others have at any rank. An empty region marks memory that is not, or no longer, exposed or reachable; kernels that
  // have begun may still store there. Uploads on the stream, of this GPU.
  void expose(unsigned slot, std::span<const Region> memories, Stream& stream);

  // Of this rank's memory that holds all of `array`; 0: none does.
  std::uint32_t slot_of(ConstRegion array) const;
  bool empty() const;
  // [slot][max_ranks], as kernels on the stream reach it.
  const block::Exposed* reached_from(const Stream& stream) const;

 private:
  std::size_t rank_, ranks_;
  Region table_;
  Memory staging_;
  std::array<Region, block::exposed_slots + 1> mine_{};
};

}  // namespace waywiser
